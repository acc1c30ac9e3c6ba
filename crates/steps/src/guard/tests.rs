use super::*;

fn policy(allowed: &[&str]) -> Policy {
    Policy::new(allowed.iter().map(|text| text.parse().unwrap()).collect())
}

fn fate(url: &str, allowed: &[&str]) -> String {
    match check(url, &policy(allowed)) {
        Ok(target) => format!("{}:{}", target.host, target.port),
        Err(denied) => {
            let text = format!("{denied:?}");
            text.split(['(', ' ']).next().unwrap_or_default().to_owned()
        }
    }
}

// case: request.inner-address
#[test]
fn every_spelling_of_an_inner_address_is_known() {
    for url in [
        "http://127.0.0.1",
        "http://2130706433",
        "http://0x7f.1",
        "http://0177.0.0.1",
        "http://127.1",
        "http://0",
        "http://１２７.0.0.1",
        "http://127。0。0。1",
        "http://0x7f000001",
        "http://017700000001",
        "http://[::1]",
        "http://[::]",
        "http://[::ffff:127.0.0.1]",
        "http://[::ffff:7f00:1]",
        "http://[::127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2002:7f00:1::]",
        "http://[fe80::1]",
        "http://[fc00::1]",
        "http://[fd12::1]",
        "http://[ff02::1]",
        "http://[2001::1]",
        "http://[2001:db8::1]",
        "http://[100::1]",
        "http://[fec0::1]",
        "http://[::ffff:0:127.0.0.1]",
        "http://169.254.169.254/latest",
        "http://100.64.0.1",
        "http://100.127.255.255",
        "http://192.0.0.1",
        "http://198.18.0.1",
        "http://198.19.255.255",
        "http://0.1.2.3",
        "http://224.0.0.1",
        "http://240.0.0.1",
        "http://255.255.255.255",
        "http://10.1.2.3",
        "http://172.16.0.1",
        "http://172.31.255.255",
        "http://192.168.1.1",
        "http://192.0.2.1",
        "http://203.0.113.9",
        "http://198.51.100.7",
        "http://127.0.0.1.",
        "http:\\\\127.0.0.1",
        "http://0.0.0.0",
        "HTTP://127.000.000.001",
    ] {
        assert_eq!(fate(url, &[]), "Address", "{url}");
    }
}

#[test]
fn public_addresses_pass() {
    for url in [
        "http://1.1.1.1",
        "https://172.32.0.1",
        "http://100.128.0.1",
        "http://172.15.0.1",
        "http://11.0.0.1",
        "http://198.20.0.1",
        "http://223.255.255.255",
        "http://192.0.1.1",
        "https://[2606:4700::1111]",
        "https://[2001:4860::8888]",
        "http://[::ffff:8.8.8.8]",
        "http://[64:ff9b::808:808]",
        "https://example.com",
        "https://example.com:8443/a?b#c",
        "https://127.0.0.1.nip.io",
        "https://xn--pple-43d.com",
    ] {
        assert!(fate(url, &[]).contains(':'), "{url}: {}", fate(url, &[]));
    }
}

// case: request.inner-name
#[test]
fn names_for_this_machine_are_known_without_asking() {
    for url in [
        "http://localhost",
        "http://localhost.",
        "http://LOCALHOST",
        "http://foo.localhost",
        "http://metadata.google.internal",
        "http://printer.local",
        "http://ｌｏｃａｌｈｏｓｔ",
    ] {
        assert_eq!(fate(url, &[]), "Name", "{url}");
    }
}

// case: request.scheme
#[test]
fn only_plain_web_addresses_are_used() {
    for (url, why) in [
        ("gopher://example.com", "Scheme"),
        ("ftp://example.com", "Scheme"),
        ("file:///etc/passwd", "Scheme"),
        ("unix:/var/run/docker.sock", "Scheme"),
        ("data:text/plain,x", "Scheme"),
        ("javascript:1", "Scheme"),
        ("http://good@evil.com", "Userinfo"),
        ("http://a:b@evil.com", "Userinfo"),
        ("http://example.com:22", "Port"),
        ("http://example.com:25", "Port"),
        ("http://example.com:6379", "Port"),
        ("http://", "Unreadable"),
        ("nonsense", "Unreadable"),
        ("http://exa mple.com", "Unreadable"),
        ("http://[::1", "Unreadable"),
        ("http://256.1.1.1", "Unreadable"),
        ("http://example.com:99999", "Unreadable"),
    ] {
        assert_eq!(fate(url, &[]), why, "{url}");
    }
    // A backslash is a slash: what follows is the path of the first host.
    assert_eq!(fate("http://good.com\\@evil.com", &[]), "good.com:80");
    assert_eq!(fate("https://Example.COM./x", &[]), "example.com:443");
}

#[test]
fn the_operator_opens_one_thing_at_a_time() {
    for (url, allowed, fate_is) in [
        ("http://127.0.0.1:9000", "127.0.0.1:9000", "127.0.0.1:9000"),
        ("http://127.0.0.1:9000", "127.0.0.1:*", "127.0.0.1:9000"),
        ("http://127.0.0.1:9000", "127.0.0.0/8:*", "127.0.0.1:9000"),
        ("http://127.0.0.1:9000", "127.0.0.1", "Port"),
        ("http://127.0.0.1:9001", "127.0.0.1:9000", "Port"),
        ("http://127.0.0.2", "127.0.0.1", "Address"),
        ("http://10.9.8.7", "10.0.0.0/8", "10.9.8.7:80"),
        ("http://11.9.8.7:99", "10.0.0.0/8:*", "Port"),
        ("http://169.254.169.254", "10.0.0.0/8", "Address"),
        ("http://169.254.169.254", "169.254.169.254", "169.254.169.254:80"),
        ("http://[::1]:9000", "[::1]:9000", "::1:9000"),
        ("http://[::ffff:10.0.0.1]", "10.0.0.0/8", "::ffff:10.0.0.1:80"),
        ("http://localhost", "localhost", "localhost:80"),
        ("http://localhost:5", "localhost:5", "localhost:5"),
        ("http://localhost:6", "localhost:5", "Port"),
        ("http://a.svc.internal", "*.svc.internal", "a.svc.internal:80"),
        ("http://svc.internal", "*.svc.internal", "Name"),
        ("http://evilsvc.internal", "*.svc.internal", "Name"),
        ("http://shop.example:9000", "shop.example:9000", "shop.example:9000"),
    ] {
        assert_eq!(fate(url, &[allowed]), fate_is, "{url} with {allowed}");
    }
}

#[test]
fn a_permission_that_is_none_is_refused() {
    for text in [
        "",
        "http://x",
        "10.0.0.0/33",
        "a b",
        "x:99999",
        "x:",
        "*",
        "*.",
        "::1/129",
        "10.0.0/8",
        "1.2.3",
    ] {
        assert!(text.parse::<Allowed>().is_err(), "{text:?}");
    }
    for text in ["::1", "fc00::/7", "[::1]:80", "a-b.c", "10.0.0.0/8:9", "0.0.0.0/0"] {
        assert!(text.parse::<Allowed>().is_ok(), "{text:?}");
    }
}

struct Names(Vec<IpAddr>);

#[async_trait::async_trait]
impl Resolver for Names {
    async fn resolve(&self, _: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn one_bad_address_refuses_the_name() {
    let asked = async |addresses: &[&str], allowed: &[&str]| {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let policy = Arc::new(policy(allowed));
        let guard = Guard { policy, resolver: Arc::new(Names(addresses)) };
        guard.addresses("a.example", 80).await
    };
    assert_eq!(asked(&["1.1.1.1"], &[]).await.unwrap(), ["1.1.1.1:80".parse().unwrap()]);
    assert!(asked(&["1.1.1.1", "127.0.0.1"], &[]).await.is_err());
    assert!(asked(&["::ffff:10.0.0.1"], &[]).await.is_err());
    assert!(asked(&["1.1.1.1", "127.0.0.1"], &["a.example"]).await.is_ok());
    assert!(asked(&["169.254.169.254"], &["a.example"]).await.is_err(), "a name is a machine");
    assert!(asked(&["10.0.0.1"], &["10.0.0.0/8"]).await.is_ok());
    assert_eq!(asked(&[], &[]).await, Err(Denied::NoAddress("a.example".into())));
}
