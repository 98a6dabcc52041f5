//! The place of a provider that may be replaced while the process runs: its file is looked at before each loop.

use std::path::PathBuf;
use std::time::SystemTime;

use plimsoll_plugins::plugin::Kind;
use plimsoll_plugins::provider::ProviderOptions;
use plimsoll_plugins::{Origin, PluginHost, Provider, Source};
use tokio::task::JoinHandle;

/// Where a plug-in is.
pub(crate) enum Place {
    File(PathBuf),
    BuiltIn(&'static [u8]),
}

/// A provider that is new.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) provider: Provider,
    /// That it is in service; none: it was started and cannot tell yet what it can do, and says itself why.
    pub(crate) words: Option<String>,
}

/// The place of one provider.
pub(crate) struct Slot {
    host: PluginHost,
    name: String,
    place: Place,
    options: ProviderOptions,
    /// Whether one was handed out.
    serves: bool,
    /// One that is being compiled and started.
    coming: Option<JoinHandle<Result<Arrival, String>>>,
    /// What the file was when it was last looked at.
    seen: Option<(SystemTime, u64)>,
    /// What was said last, so that it is said once.
    said: Option<String>,
}

impl Slot {
    pub(crate) fn new(host: PluginHost, name: String, place: Place, options: ProviderOptions) -> Self {
        Self { host, name, place, options, serves: false, coming: None, seen: None, said: None }
    }

    /// The provider, if it is new: at the first call, and after its file was replaced. A new file is compiled while the old
    /// one serves; only if none does, this waits. An error is told once, and leaves the one that serves where it is.
    pub(crate) async fn poll(&mut self) -> Result<Option<Arrival>, String> {
        if self.coming.is_none() {
            match self.find() {
                Ok(Some(source)) => self.coming = Some(self.begin(source)),
                Ok(None) => {}
                Err(why) => return self.once(why),
            }
        }
        let serves = self.serves;
        let Some(coming) = self.coming.take_if(|coming| coming.is_finished() || !serves) else { return Ok(None) };
        let came = coming.await.unwrap_or_else(|error| Err(format!("provider {:?}: {error}", self.name)));
        match came {
            Ok(arrival) => {
                self.serves = true;
                self.said = None;
                Ok(Some(arrival))
            }
            Err(why) => self.once(why),
        }
    }

    fn begin(&self, source: Source) -> JoinHandle<Result<Arrival, String>> {
        tokio::spawn(take(self.host.clone(), source, self.options.clone(), self.serves))
    }

    /// The plug-in, if it was not looked at yet.
    fn find(&mut self) -> Result<Option<Source>, String> {
        let (origin, bytes) = match &self.place {
            Place::BuiltIn(_) if self.seen.is_some() => return Ok(None),
            Place::BuiltIn(bytes) => {
                self.seen = Some((SystemTime::UNIX_EPOCH, 0));
                (Origin::BuiltIn, bytes.to_vec())
            }
            Place::File(file) => {
                let file = file.clone();
                let Some(bytes) = self.read_if_new(&file)? else { return Ok(None) };
                (Origin::File(file), bytes)
            }
        };
        let name = self.name.as_str().into();
        Ok(Some(Source { name, origin, kind: Some(Kind::CloudProvider), bytes: bytes.into() }))
    }

    fn read_if_new(&mut self, file: &PathBuf) -> Result<Option<Vec<u8>>, String> {
        let fail =
            |error: std::io::Error| format!("provider {:?}: {} cannot be read: {error}", self.name, file.display());
        let data = std::fs::metadata(file).map_err(fail)?;
        let stamp = (data.modified().map_err(fail)?, data.len());
        if self.seen == Some(stamp) {
            return Ok(None);
        }
        let bytes = std::fs::read(file).map_err(fail)?;
        self.seen = Some(stamp);
        Ok(Some(bytes))
    }

    fn once(&mut self, why: String) -> Result<Option<Arrival>, String> {
        if self.said.as_ref() == Some(&why) {
            return Ok(None);
        }
        self.said = Some(why.clone());
        Err(why)
    }
}

/// Compiles and starts a plug-in. One that cannot even be configured must not take the place of one that serves.
async fn take(
    host: PluginHost,
    source: Source,
    options: ProviderOptions,
    another_serves: bool,
) -> Result<Arrival, String> {
    let plugin = host.load(source, None).await.map_err(|error| error.to_string())?;
    let provider = Provider::spawn(&host, &plugin, options).map_err(|error| error.to_string())?;
    let (name, origin) = (plugin.name(), plugin.origin());
    let version = plugin.manifest().version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    match provider.capabilities().await {
        Ok(_) => {
            let comes = if another_serves { "takes over" } else { "comes into service" };
            let words = Some(format!("provider {name:?}{version} {comes} ({origin})"));
            Ok(Arrival { provider, words })
        }
        Err(error) if another_serves => Err(format!("provider {name:?}: {error}; the one before it goes on serving")),
        Err(_) => Ok(Arrival { provider, words: None }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_plugins::HostOptions;
    use plimsoll_plugins::egress::{InProcess, TransportError};
    use plimsoll_plugins::provider::Setup;

    use super::*;

    fn bytes(name: &str) -> &'static [u8] {
        plimsoll_bundled::PROVIDERS.iter().find(|&&(known, _)| known == name).unwrap().1
    }

    fn slot(file: PathBuf) -> Slot {
        let setup = Setup { cloud_config: Some(r#"{"cluster_id": "1111"}"#.to_owned()), ..Setup::default() };
        let nobody = InProcess::faulty(|_| async { Err(TransportError::Refused) });
        let host = PluginHost::new(HostOptions::default()).unwrap();
        Slot::new(host, "cloud".to_owned(), Place::File(file), ProviderOptions::new(setup, Arc::new(nobody)))
    }

    /// What comes of a new file, and how often the loop looked in vain meanwhile.
    async fn in_the_end(slot: &mut Slot) -> (Result<Arrival, String>, usize) {
        let mut looks = 0;
        loop {
            match slot.poll().await {
                Ok(None) => looks += 1,
                Ok(Some(arrival)) => return (Ok(arrival), looks),
                Err(why) => return (Err(why), looks),
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_is_compiled_while_the_old_one_serves() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cloud.wasm");
        let mut slot = slot(file.clone());
        assert!(slot.poll().await.unwrap_err().contains("cannot be read"));
        assert!(slot.poll().await.unwrap().is_none(), "it is told once");

        std::fs::write(&file, bytes("utho")).unwrap();
        let first = slot.poll().await.unwrap().expect("the loop waits if nothing serves");
        assert_eq!(first.provider.capabilities().await.unwrap().provider_name, "utho");
        let words = first.words.unwrap();
        assert!(words.starts_with("provider \"cloud\" ") && words.contains(" comes into service ("), "{words}");

        // It reads another kind of configuration.
        std::fs::write(&file, bytes("alicloud")).unwrap();
        let (refused, looks) = in_the_end(&mut slot).await;
        assert!(refused.unwrap_err().contains("the one before it goes on serving"));
        assert!(looks > 0, "a loop does not wait for the compiler");
        assert!(slot.poll().await.unwrap().is_none(), "it is told once");

        // The same again, with a longer file so that it is seen to be another. A custom section changes nothing.
        let mut longer = bytes("utho").to_vec();
        longer.extend([0, 4, 1, b'x', 0, 0]);
        std::fs::write(&file, longer).unwrap();
        let words = in_the_end(&mut slot).await.0.unwrap().words.unwrap();
        assert!(words.contains(" takes over ("), "{words}");
    }
}
