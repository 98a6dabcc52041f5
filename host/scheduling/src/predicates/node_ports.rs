//! NodePorts: ports of the node itself.

use plimsoll_model::pod::HostPort;
use plimsoll_model::symbol::known;
use plimsoll_model::{PodSpec, Symbols};
use rustc_hash::FxHashMap;

use super::{DynamicRule, Predicate, Tracker, Verdict};
use crate::oracle::{Place, World};
use crate::refusal::Reason;
use crate::snapshot::base::{Base, ClassId, NodeId};

/// A host port can be taken once per protocol and address; the wildcard address stands for every address.
///
/// The scheduler keeps a set of taken ports per node, so that of two pods with the same port (which it never places, but
/// which can exist) the first that leaves frees it. Here each counts.
pub(crate) struct NodePorts;

fn conflict(wanted: &HostPort, taken: &HostPort) -> bool {
    wanted.port == taken.port
        && wanted.protocol == taken.protocol
        && (wanted.address == taken.address
            || wanted.address == known::ANY_ADDRESS
            || taken.address == known::ANY_ADDRESS)
}

fn refused(wanted: &HostPort, symbols: &Symbols) -> Reason {
    let (address, protocol) = (symbols.text(wanted.address), symbols.text(wanted.protocol));
    Reason::HostPort { port: format!("{address}:{}/{protocol}", wanted.port).into() }
}

impl Predicate for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }
}

impl DynamicRule for NodePorts {
    fn refuse(&self, world: &World<'_>, pod: &PodSpec, node: &Place) -> Vec<Reason> {
        let taken = |wanted: &&HostPort| {
            node.pods.iter().any(|pod| world.spec(pod.spec).host_ports.iter().any(|taken| conflict(wanted, taken)))
        };
        Vec::from_iter(pod.host_ports.iter().find(taken).map(|port| refused(port, world.facts.symbols())))
    }

    fn tracker(&self) -> Box<dyn Tracker> {
        Box::new(Taken::default())
    }
}

/// Taken ports by node, with how often each is taken. Nodes without any are absent.
#[derive(Default)]
struct Taken {
    by_node: FxHashMap<NodeId, Vec<(HostPort, i64)>>,
    awake: bool,
}

impl Taken {
    fn conflict<'p>(&self, base: &Base<'p>, class: ClassId, node: NodeId) -> Option<&'p HostPort> {
        let taken = self.by_node.get(&node)?;
        base.spec(class).host_ports.iter().find(|wanted| taken.iter().any(|(taken, _)| conflict(wanted, taken)))
    }
}

impl Tracker for Taken {
    fn meet(&mut self, base: &Base<'_>, class: ClassId) -> bool {
        self.awake |= !base.spec(class).host_ports.is_empty();
        false
    }

    fn prepare(&mut self, base: &mut Base<'_>, class: ClassId) -> bool {
        !base.spec(class).host_ports.is_empty()
    }

    fn is_awake(&self) -> bool {
        self.awake
    }

    fn moved(&mut self, base: &Base<'_>, class: ClassId, node: NodeId, delta: i64) {
        let ports = &base.spec(class).host_ports;
        if ports.is_empty() {
            return;
        }
        let taken = self.by_node.entry(node).or_default();
        for port in ports {
            match taken.iter_mut().find(|(taken, _)| taken == port) {
                Some((_, times)) => *times += delta,
                None => taken.push((*port, delta)),
            }
        }
        taken.retain(|(_, times)| *times != 0);
        if taken.is_empty() {
            self.by_node.remove(&node);
        }
    }

    fn verdict(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Verdict {
        self.conflict(base, class, node).map_or(Verdict::Fits, |_| Verdict::Never)
    }

    fn room(&self, _base: &Base<'_>, _class: ClassId, _node: NodeId) -> u32 {
        // The first one takes the port.
        1
    }

    fn reasons(&self, base: &Base<'_>, class: ClassId, node: NodeId) -> Vec<Reason> {
        Vec::from_iter(self.conflict(base, class, node).map(|port| refused(port, base.facts.symbols())))
    }

    fn digest(&self, base: &Base<'_>, state: &mut dyn std::hash::Hasher) {
        for node in base.life.ids() {
            let mut taken = self.by_node.get(&node).cloned().unwrap_or_default();
            taken.sort_unstable();
            for (port, times) in taken {
                state.write_usize(node.index());
                state.write_u16(port.port);
                state.write_usize(port.address.index());
                state.write_usize(port.protocol.index());
                state.write_i64(times);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::snapshot::base::NodeId;
    use crate::testing::Scene;

    fn ports(of: &[&str]) -> String {
        let port = |text: &&str| {
            let [protocol, address, port] = text.split('/').collect::<Vec<_>>()[..] else { panic!("{text}") };
            format!("{{protocol: {protocol}, hostIP: \"{address}\", hostPort: {port}, containerPort: {port}}}")
        };
        let ports: Vec<String> = of.iter().map(port).collect();
        format!("{{spec: {{containers: [{{name: c, ports: [{}]}}]}}}}", ports.join(", "))
    }

    #[test]
    fn a_port_is_taken_once_per_protocol_and_address() {
        for (name, wanted, taken, fits) in [
            ("another port", vec!["UDP/127.0.0.1/8080"], vec!["UDP/127.0.0.1/9090"], true),
            ("the same", vec!["UDP/127.0.0.1/8080"], vec!["UDP/127.0.0.1/8080"], false),
            ("another address", vec!["TCP/127.0.0.1/8080"], vec!["TCP/127.0.0.2/8080"], true),
            ("another protocol", vec!["UDP/127.0.0.1/8080"], vec!["TCP/127.0.0.1/8080"], true),
            ("one of two", vec!["UDP/127.0.0.1/8000", "UDP/127.0.0.1/8080"], vec!["UDP/127.0.0.1/8080"], false),
            ("all addresses wanted", vec!["TCP/0.0.0.0/8001"], vec!["TCP/127.0.0.1/8001"], false),
            ("all addresses taken", vec!["TCP/127.0.0.1/8001"], vec!["TCP/0.0.0.0/8001"], false),
            (
                "one of two is for all",
                vec!["TCP/10.0.10.10/8001", "TCP/0.0.0.0/8001"],
                vec!["TCP/127.0.0.1/8001"],
                false,
            ),
            ("all addresses of another protocol", vec!["UDP/127.0.0.1/8001"], vec!["TCP/0.0.0.0/8001"], true),
            ("of both protocols", vec!["UDP/127.0.0.1/8001"], vec!["TCP/0.0.0.0/8001", "UDP/0.0.0.0/8001"], false),
            ("no address is every address", vec!["TCP//8001"], vec!["TCP/127.0.0.1/8001"], false),
            ("the other wildcard is just an address", vec!["TCP/::/8001"], vec!["TCP/127.0.0.1/8001"], true),
            ("nothing wanted", vec![], vec!["TCP/0.0.0.0/8001"], true),
        ] {
            let mut scene = Scene::new();
            scene.node("n1", "{}");
            scene.resident("n1", &ports(&taken));
            let pod = scene.pod(&ports(&wanted));
            let expected =
                if fits { "" } else { "NodePorts: node(s) didn't have free ports for the requested pod ports" };
            assert_eq!(scene.verdict(pod), expected, "{name}");
        }
    }

    #[test]
    fn sidecars_hold_ports_and_other_init_containers_do_not() {
        for (name, restart, fits) in [("a sidecar", "restartPolicy: Always, ", false), ("an init container", "", true)]
        {
            let mut scene = Scene::new();
            scene.node("n1", "{}");
            scene.resident(
                "n1",
                &format!(
                    "{{spec: {{initContainers: [{{name: i, {restart}ports: [{{hostPort: 80, containerPort: 80}}]}}]}}}}"
                ),
            );
            let pod = scene.pod(&ports(&["TCP/0.0.0.0/80"]));
            assert_eq!(scene.verdict(pod).is_empty(), fits, "{name}");
        }
    }

    #[test]
    fn a_port_that_two_pods_hold_is_free_when_both_have_left() {
        let mut scene = Scene::new();
        scene.node("n1", "{}");
        let pod = scene.pod(&ports(&["TCP/0.0.0.0/80"]));
        let mut snapshot = scene.snapshot();
        let (class, node) = (snapshot.class(pod), NodeId::new(0));
        snapshot.place(class, node, 2);
        snapshot.unplace(class, node, 1);
        assert!(!snapshot.fits(class, node));
        snapshot.unplace(class, node, 1);
        assert_eq!(snapshot.room(class, node), 1);
    }
}
