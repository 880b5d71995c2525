import { SecretPanel } from '../../ui/overlays/secret-panel.tsx'
import { text } from './text.ts'

const variable = 'BRIGADE_WEBHOOK_SECRET'

const node = `import { createHmac, timingSafeEqual } from 'node:crypto'

/** header: x-br-signature; body: the raw bytes of the request. */
export function isGenuine(header, body) {
  const [, t, v1] = /^t=(\\d+),v1=([0-9a-f]{64})$/.exec(header ?? '') ?? []
  if (t === undefined || Math.abs(Date.now() / 1000 - Number(t)) > 300) return false
  const expected = createHmac('sha256', process.env.${variable}).update(\`\${t}.\`).update(body).digest()
  return timingSafeEqual(Buffer.from(v1, 'hex'), expected)
}`

const python = `import hashlib, hmac, os, re, time

def is_genuine(header: str, body: bytes) -> bool:
    found = re.fullmatch(r"t=([0-9]+),v1=([0-9a-f]{64})", header or "")
    if found is None or abs(time.time() - int(found[1])) > 300:
        return False
    secret = os.environ["${variable}"].encode()
    expected = hmac.new(secret, found[1].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(found[2], expected)`

const go = `var shape = regexp.MustCompile("^t=([0-9]+),v1=([0-9a-f]{64})$")

func isGenuine(header string, body []byte) bool {
	found := shape.FindStringSubmatch(header)
	if found == nil {
		return false
	}
	t, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil || time.Since(time.Unix(t, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(os.Getenv("${variable}")))
	mac.Write([]byte(found[1] + "."))
	mac.Write(body)
	return hmac.Equal([]byte(found[2]), []byte(hex.EncodeToString(mac.Sum(nil))))
}`

const clients = [
  { id: 'node', label: 'Node', text: node },
  { id: 'python', label: 'Python', text: python },
  { id: 'go', label: 'Go', text: go },
]

interface WebhookSecretProps {
  readonly title: string
  readonly about: string
  readonly secret: string
  readonly onDone: () => void
}

/** The signing secret of an endpoint, once, with the code that checks a signature. */
export function WebhookSecret({ title, about, secret, onDone }: WebhookSecretProps) {
  return (
    <SecretPanel title={title} secret={secret} variable={variable} clients={clients} onDone={onDone}>
      <p>{about}</p>
      <p>{text.secret.about}</p>
    </SecretPanel>
  )
}
