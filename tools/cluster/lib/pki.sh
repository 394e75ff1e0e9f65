# Certificates and kubeconfigs by openssl. Every file is written aside and renamed, so that a kill leaves either a
# whole file or none, and a second call repairs. Sourced, never run.

pki_authority() { # DIR
  local dir=$1
  [[ -s $dir/ca.crt && -s $dir/ca.key ]] && return 0
  mkdir -p "$dir"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=evenkeel-cluster \
    -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$dir/ca.key" -out "$dir/ca.crt.new" 2>/dev/null ||
    die "openssl could not make a certificate authority in $dir"
  mv "$dir/ca.crt.new" "$dir/ca.crt"
}

pki_certificate() { # DIR NAME SUBJECT [SUBJECT_ALTERNATIVE_NAMES]
  local dir=$1 name=$2 subject=$3 names=${4:-}
  [[ -s $dir/$name.crt && -s $dir/$name.key ]] && return 0
  {
    printf 'keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n'
    [[ -z $names ]] || printf 'subjectAltName=%s\n' "$names"
  } >"$dir/$name.ext"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$subject" \
    -keyout "$dir/$name.key" -out "$dir/$name.csr" 2>/dev/null || die "openssl could not make $dir/$name.key"
  openssl x509 -req -in "$dir/$name.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -set_serial "0x$(openssl rand -hex 16)" \
    -days 3650 -extfile "$dir/$name.ext" -out "$dir/$name.crt.new" 2>/dev/null ||
    die "openssl could not sign $dir/$name.crt"
  mv "$dir/$name.crt.new" "$dir/$name.crt"
  rm -f "$dir/$name.csr" "$dir/$name.ext"
}

pki_service_account_key() { # DIR
  [[ -s $1/sa.key && -s $1/sa.pub ]] && return 0
  openssl ecparam -name prime256v1 -genkey -noout -out "$1/sa.key" 2>/dev/null
  openssl ec -in "$1/sa.key" -pubout -out "$1/sa.pub.new" 2>/dev/null || die "openssl could not make $1/sa.pub"
  mv "$1/sa.pub.new" "$1/sa.pub"
}

pki_base64() { base64 -w0 <"$1"; }

# A kubeconfig that holds its certificates inside, so that it can be copied anywhere.
pki_kubeconfig() { # DIR NAME SERVER_URL OUT
  local dir=$1 name=$2 server=$3 out=$4
  (umask 077 && cat >"$out.new") <<EOF
apiVersion: v1
kind: Config
clusters:
- name: evenkeel
  cluster:
    server: $server
    certificate-authority-data: $(pki_base64 "$dir/ca.crt")
users:
- name: $name
  user:
    client-certificate-data: $(pki_base64 "$dir/$name.crt")
    client-key-data: $(pki_base64 "$dir/$name.key")
contexts:
- name: evenkeel
  context: {cluster: evenkeel, user: $name}
current-context: evenkeel
EOF
  mv "$out.new" "$out"
}
