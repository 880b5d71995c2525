// Checks a residency attestation with nothing but Node: node verify-attestation.mjs attestation.json keys.json
// keys.json is what the gateway publishes at /.well-known/attestation-keys.json; fetch it yourself, from the gateway that you know.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [, , file, keysFile] = process.argv
if (!file || !keysFile) fail('usage: node verify-attestation.mjs attestation.json keys.json')

const textOf = path => new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))

/** What is signed: RFC 8785, members sorted by their UTF-16 names, no space between. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map(name => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}

/** Some readers take Total and total for one name, so there is one way of writing names. */
function known(name, value) {
  if (!/^([a-z][a-z0-9_]*|\d*)$/.test(name)) fail(`not valid: the name ${name} stands in no attestation`)
  return value
}

try {
  const text = textOf(file).trim()
  const attestation = JSON.parse(text, known)
  const { payload, ed25519 } = attestation
  // A text with a name twice, or with a number that no double holds, means different things to different readers. The gateway writes neither,
  // so the text without the spaces between its tokens has to be what its own value says.
  const bare = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
  if (bare !== JSON.stringify(JSON.parse(text))) fail('not valid: this is not the text that the gateway wrote')
  const unsigned = [...Object.keys(attestation), ...Object.keys(ed25519)]
  const more = unsigned.find(name => !['payload', 'alg', 'key_id', 'signature', 'ed25519', 'jwks_url'].includes(name))
  if (more) fail(`not valid: ${more} is not signed and stands in no attestation`)
  const jwk = JSON.parse(textOf(keysFile)).keys.find(({ kid, kty }) => kid === ed25519.key_id && kty === 'OKP')
  if (!jwk) fail(`not valid: the key ${ed25519.key_id} is not in ${keysFile}`)
  // An id is the thumbprint of its key (RFC 7638), so nobody puts another key under the id that you know.
  const thumbprint = createHash('sha256').update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x: jwk.x }))
  if (thumbprint.digest('base64url') !== jwk.kid) fail(`not valid: the key ${jwk.kid} in ${keysFile} is not the one of this id`)
  const signature = Buffer.from(ed25519.signature, 'base64url')
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  if (ed25519.alg !== 'EdDSA' || signature.toString('base64url') !== ed25519.signature) fail('not valid: that is no Ed25519 signature')
  if (!verify(null, Buffer.from(canonical(payload)), key, signature)) fail('not valid: the signature does not belong to this payload')
  const { issuer, org_id, window, generated_at, summary, token_counts: counts } = payload
  console.log(`valid: signed with ${ed25519.key_id}`)
  console.log(`organisation ${org_id} at ${issuer}, ${window} until ${generated_at}`)
  console.log(`in India: ${summary.india_requests} of ${summary.total} requests (${summary.india_pct} %)`)
  console.log(`prompts sent out to have their tokens counted: ${counts.total}, ${counts.global_requests} of them not proven to be in India`)
} catch (error) {
  fail(`not valid: ${error.message}`)
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
