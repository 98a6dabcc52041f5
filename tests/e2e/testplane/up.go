package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

func init() { components["up"] = newUpCommand }

type plane struct {
	dir   string
	with  []string // components to start after the API server is ready
	port  int      // of the API server; 0 picks a free one
	audit string   // file with the audit policy; empty: no audit log
	eof   bool     // end with standard input
	etcd  *embed.Etcd
	dead  chan error

	mu   sync.Mutex
	kids map[string]*child // by component
}

// child is a component that runs, or one that was stopped and can be started again.
type child struct {
	args    []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed once it has
	stopped bool          // on purpose
}

func newUpCommand() *cobra.Command {
	p := &plane{dead: make(chan error, 8), kids: map[string]*child{}}
	cmd := &cobra.Command{
		Use:          "up",
		Short:        "start a control plane on loopback and keep it until a signal",
		SilenceUsage: true,
		RunE:         func(*cobra.Command, []string) error { return p.run() },
	}
	cmd.Flags().StringVar(&p.dir, "dir", "", "folder for keys, kubeconfigs, data and logs (must be empty or absent)")
	cmd.Flags().StringSliceVar(&p.with, "with", []string{"kube-scheduler", "kube-controller-manager"}, "components besides etcd and kube-apiserver")
	cmd.Flags().IntVar(&p.port, "port", 0, "port of the API server (0: a free one)")
	cmd.Flags().StringVar(&p.audit, "audit-policy", "", "audit policy of the API server; the log is audit.log")
	cmd.Flags().BoolVar(&p.eof, "until-eof", false, "obey lines on standard input (start NAME, stop NAME, compact) and end when it does, so with the test that holds the other end")
	_ = cmd.MarkFlagRequired("dir")
	return cmd
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) run() (err error) {
	start := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer p.killAll()
	up := make(chan struct{})
	if p.eof {
		// Orders are obeyed once everything is up; the end of standard input counts at once.
		go p.obey(up, stop)
	}

	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return err
	}
	if err = os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	if p.port == 0 {
		if p.port, err = freePort(); err != nil {
			return err
		}
	}
	server := fmt.Sprintf("https://127.0.0.1:%d", p.port)
	ca, err := p.writeKeys()
	if err != nil {
		return err
	}
	if err = p.writeUsers(server, ca); err != nil {
		return err
	}

	endpoint, err := p.startEtcd()
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer func() {
		p.killAll() // the clients first: etcd waits for them
		p.etcd.Close()
	}()

	apiserver := []string{
		"--etcd-servers=" + endpoint,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.port),
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + p.path("serving.crt"), "--tls-private-key-file=" + p.path("serving.key"),
		"--client-ca-file=" + p.path("ca.crt"),
		"--token-auth-file=" + p.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.path("sa.key"),
		"--service-account-signing-key-file=" + p.path("sa.key"),
		"--allow-privileged=true",
	}
	if !slices.Contains(p.with, "kube-controller-manager") {
		// Nothing makes the default service accounts, so no pod could be created.
		apiserver = append(apiserver, "--disable-admission-plugins=ServiceAccount")
	}
	if p.audit != "" {
		apiserver = append(apiserver, "--audit-policy-file="+p.audit, "--audit-log-path="+p.path("audit.log"))
	}
	if err = p.spawn("kube-apiserver", apiserver...); err != nil {
		return err
	}
	if err = p.waitReady(ctx, server+"/readyz", ca); err != nil {
		return err
	}
	fmt.Printf("apiserver ready after %.1fs: %s\n", time.Since(start).Seconds(), server)

	for _, name := range p.with {
		if components[name] == nil {
			return fmt.Errorf("%s is not in this build", name)
		}
		args := []string{"--kubeconfig=" + p.path(name+".kubeconfig")}
		switch name {
		case "kube-scheduler":
			args = append(args, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000")
		case "kube-controller-manager":
			args = append(args, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000", "--kube-api-burst=2000",
				"--use-service-account-credentials=true", "--flex-volume-plugin-dir="+p.path("flexvolume"),
				"--service-account-private-key-file="+p.path("sa.key"), "--root-ca-file="+p.path("ca.crt"))
		}
		if err = p.spawn(name, args...); err != nil {
			return err
		}
	}
	fmt.Printf("up after %.1fs, pid %d\nKUBECONFIG=%s\n", time.Since(start).Seconds(), os.Getpid(), p.path("admin.kubeconfig"))
	close(up)

	select {
	case <-ctx.Done():
		return nil
	case err = <-p.dead:
		return err
	}
}

// startEtcd runs a one-member etcd inside this process. It never syncs to disk: the data need not outlive the test.
func (p *plane) startEtcd() (string, error) {
	clientPort, err := freePort()
	if err != nil {
		return "", err
	}
	client := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", clientPort)}
	peerPort, err := freePort()
	if err != nil {
		return "", err
	}
	peer := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", peerPort)}

	cfg := embed.NewConfig()
	cfg.Name = "testplane"
	cfg.Dir = p.path("etcd")
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true
	cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration // zero would log every request
	cfg.LogLevel = "warn"
	cfg.LogOutputs = []string{p.path("etcd.log")}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return "", err
	}
	select {
	case <-e.Server.ReadyNotify():
		p.etcd = e
		return client.String(), nil
	case <-time.After(30 * time.Second):
		e.Close()
		return "", errors.New("not ready in 30 s")
	}
}

func (p *plane) waitReady(ctx context.Context, url string, ca []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		if resp, err := client.Get(url); err == nil { // /readyz is open to anonymous users
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-p.dead:
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("kube-apiserver not ready in 2 min")
}

// writeUsers makes a random token and a kubeconfig for each user.
func (p *plane) writeUsers(server string, ca []byte) error {
	users := []struct{ file, user, groups string }{
		{"admin", "admin", "system:masters"},
		{"kube-scheduler", "system:kube-scheduler", ""},
		{"kube-controller-manager", "system:kube-controller-manager", ""},
	}
	tokens := ""
	for _, u := range users {
		raw := make([]byte, 16)
		if _, err := rand.Read(raw); err != nil {
			return err
		}
		token := hex.EncodeToString(raw)
		tokens += fmt.Sprintf("%s,%s,%s,%q\n", token, u.user, u.file, u.groups)
		kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: testplane, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: %q, user: {token: %q}}]
contexts: [{name: testplane, context: {cluster: testplane, user: %q}}]
current-context: testplane
`, server, p.path("ca.crt"), u.user, token, u.user)
		if err := os.WriteFile(p.path(u.file+".kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(p.path("tokens.csv"), []byte(tokens), 0o600)
}

// writeKeys makes a CA, the serving certificate and the service account key.
func (p *plane) writeKeys() (caPEM []byte, err error) {
	now := time.Now()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	caCert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "testplane-ca"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if caPEM, err = p.sign("ca.crt", caCert, caCert, &caKey.PublicKey, caKey); err != nil {
		return nil, err
	}
	serving, err := p.writeKey("serving.key")
	if err != nil {
		return nil, err
	}
	_, err = p.sign("serving.crt", &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)},
	}, caCert, &serving.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	_, err = p.writeKey("sa.key")
	return caPEM, err
}

func (p *plane) sign(name string, cert, parent *x509.Certificate, pub *ecdsa.PublicKey, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, pub, key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return out, os.WriteFile(p.path(name), out, 0o600)
}

func (p *plane) writeKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, os.WriteFile(p.path(name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
