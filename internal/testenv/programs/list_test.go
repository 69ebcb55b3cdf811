package programs

// program is one with what it is to say when it has reached its server. In command
// $CA is the file with the servers' certificate, $DIR the folder of what was built.
type program struct {
	name, command string
	want          string
	grants        []string // names with ports
}

var web = []string{"a.test"}

// sshOptions have no configuration, no agent and no known hosts.
const sshOptions = "-F none -i $DIR/key -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"

// programs know of no proxy, and are told of none.
var programs = []program{
	{"curl, https", "curl -sS --cacert $CA https://a.test/", "GET a.test /", web},
	{"curl, http", "curl -sS http://a.test/", "GET a.test /", web},
	{"wget", "wget -q -O - --ca-certificate=$CA https://a.test/", "GET a.test /", web},
	{"git, https", "GIT_SSL_CAINFO=$CA git clone -q https://git.test/demo.git demo && cat demo/file", "of the repository", []string{"git.test"}},
	{"git, ssh", "GIT_SSH_COMMAND=\"${GIT_SSH_COMMAND:-ssh} " + sshOptions + "\" git clone -q ssh://root@git.test$DIR/git/demo.git demo && cat demo/file", "of the repository", []string{"git.test:22"}},
	{"ssh", "ssh " + sshOptions + " root@git.test echo from the server", "from the server", []string{"git.test:22"}},
	{"Go, net/http", "SSL_CERT_FILE=$CA $DIR/get https://a.test/", "GET a.test /", web},
	{"Python, urllib", "SSL_CERT_FILE=$CA /usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen(\"https://a.test/\").read())'", "GET a.test /", web},
	{"Python, requests", "REQUESTS_CA_BUNDLE=$CA /usr/bin/python3 -c 'import requests; print(requests.get(\"https://a.test/\").text)'", "GET a.test /", web},
	{"Python, asyncio", "/usr/bin/python3 $DIR/aio.py a.test $CA", "GET a.test /", web},
	{"Node, fetch", "NODE_EXTRA_CA_CERTS=$CA $NODE -e 'fetch(\"https://a.test/\").then(r => r.text()).then(console.log)'", "GET a.test /", web},
	{"Node, https", "NODE_EXTRA_CA_CERTS=$CA $NODE -e 'require(\"https\").get(\"https://a.test/\", r => r.pipe(process.stdout))'", "GET a.test /", web},
	{"Node, undici", "NODE_EXTRA_CA_CERTS=$CA NODE_PATH=$NPM/node_modules $NODE -e 'require(\"undici\").request(\"https://a.test/\").then(r => r.body.text()).then(console.log)'", "GET a.test /", web},
	{"Java, HttpClient", "java -XX:TieredStopAtLevel=1 $DIR/Fetch.java https://a.test/ $CA", "GET a.test /", web},
	{"npm", "cp $DIR/npm/project/* . && npm ci --cafile $CA --loglevel=error --fetch-retries 0 --registry https://npm.test/ --cache ./cache --no-audit --no-fund && cat node_modules/demo/index.js", "of the package", []string{"npm.test"}},
	{"pip", "PIP_CERT=$CA /usr/bin/python3 -m pip install -q --retries 0 --no-cache-dir --disable-pip-version-check --target t --index-url https://pip.test/simple demo && cat t/demo.py", "of the wheel", []string{"pip.test"}},
	{"apt", "mkdir -p s/lists/partial c/archives/partial d && apt-get $APT update && apt-get $APT download demo && dpkg-deb -x demo_*.deb d && cat d/usr/share/demo", "of the archive", []string{"deb.test"}},
	{"a static musl program", "$DIR/get-musl a.test", "GET a.test /", web},
	{"busybox wget, static", "/bin/busybox wget -q -O - http://a.test/", "GET a.test /", web},
	{"Perl, HTTP::Tiny", "perl -MHTTP::Tiny -e 'print HTTP::Tiny->new->get(\"http://a.test/\")->{content}'", "GET a.test /", web},
	{"bash, /dev/tcp", `bash -c 'exec 3<>/dev/tcp/a.test/80; printf "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n" >&3; cat <&3'`, "GET a.test /", web},
	{"OpenSSL", "printf 'GET / HTTP/1.0\\r\\nHost: a.test\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error -CAfile $CA -connect a.test:443 -servername a.test", "GET a.test /", web},
	{"psql", "psql -X -At 'host=db.test user=postgres dbname=postgres connect_timeout=5' -c \"select 'of the ' || 'database'\"", "of the database", []string{"db.test:5432"}},
	{"Chromium", "$CHROMIUM --headless --no-sandbox --disable-gpu --disable-background-networking --user-data-dir=$PWD/profile --ignore-certificate-errors --virtual-time-budget=5000 --dump-dom https://a.test/", "GET a.test /", web},
}

// refusals are attempts by a call that is granted a.test, evil.test, meta.test and
// move.test: what each wants must not be had.
var refusals = []program{
	{name: "another name", command: "curl -sS --cacert $CA https://b.test/", want: "GET b.test"},
	{name: "the granted name on another port", command: "curl -sS --http0.9 -m 5 http://a.test:2222/", want: "ready"},
	{name: "an address that is not granted", command: "curl -sS -m 5 --noproxy '*' http://203.0.113.11/; curl -sS -m 5 http://203.0.113.11/", want: "GET"},
	{name: "the same, as IPv4 in IPv6", command: "curl -sS -g -m 5 --noproxy '*' 'http://[::ffff:203.0.113.11]/'; curl -sS -g -m 5 'http://[::ffff:203.0.113.11]/'", want: "GET"},
	{name: "the metadata address", command: "curl -sS -m 5 --noproxy '*' http://169.254.169.254/; curl -sS -m 5 http://169.254.169.254/", want: "GET"},
	{name: "a granted name that leads there", command: "curl -sS -m 5 http://meta.test/", want: "GET"},
	{name: "the host's loopback", command: "for at in 127.0.0.1 localhost 127.1 2130706433 0x7f000001 0.0.0.0 '[::ffff:127.0.0.1]'; do curl -gsS -m 5 --noproxy '*' http://$at:8080/; curl -gsS -m 5 http://$at:8080/; done", want: "GET"},
	{name: "a granted name that leads there, too", command: "curl -sS -m 5 http://evil.test/", want: "GET"},
	{name: "a granted name that changes", command: "for n in 1 2 3 4 5 6; do curl -sS -m 5 http://move.test/; done", want: "at 127.0.0.1"},
	{name: "TLS for another name", command: "curl -sS -m 5 --cacert $CA --connect-to b.test:443:a.test:443 https://b.test/", want: "GET b.test"},
	{name: "another host in the request", command: "curl -sS -m 5 -H 'Host: b.test' http://a.test/", want: "GET b.test"},
	{name: "another host in the second request", command: "curl -sS -m 5 http://a.test/ --next -sS -m 5 -H 'Host: b.test' http://a.test/", want: "GET b.test"},
	{name: "UDP", command: `/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.sendto(bytes.fromhex("00010100000100000000000001610474657374") + b"\0\0\1\0\1", ("203.0.113.10", 53)); print("answered", s.recv(512))'`, want: "answered"},
	{name: "routes", command: "ip route add default dev lo && echo changed", want: "changed"},
}
