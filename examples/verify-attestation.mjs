// Checks a residency attestation. It needs only Node: node verify-attestation.mjs attestation.json keys.json keys.json is the file that the gateway
// publishes at /.well-known/attestation-keys.json. Download it yourself from the gateway that you trust.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'

const [, , file, keysFile] = process.argv
if (!file || !keysFile) fail('usage: node verify-attestation.mjs attestation.json keys.json')

const textOf = path => new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))

/** Returns the text that is signed, by RFC 8785: members are sorted by the UTF-16 code units of their names, without spaces between tokens. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.keys(value).sort()
  return `{${members.map(name => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}

/** Refuses names in any other form. Some JSON readers treat "Total" and "total" as the same name. */
function known(name, value) {
  if (!/^([a-z][a-z0-9_]*|\d*)$/.test(name)) fail(`not valid: the name ${name} stands in no attestation`)
  return value
}

try {
  const text = textOf(file).trim()
  const attestation = JSON.parse(text, known)
  const { payload, ed25519 } = attestation
  // A JSON text with a repeated name, or with a number that a double cannot hold, means different things to different readers. The gateway writes neither.
  // So the text without the spaces between its tokens must be equal to its value, written again.
  const bare = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1')
  if (bare !== JSON.stringify(JSON.parse(text))) fail('not valid: this is not the text that the gateway wrote')
  const unsigned = [...Object.keys(attestation), ...Object.keys(ed25519)]
  const more = unsigned.find(name => !['payload', 'alg', 'key_id', 'signature', 'ed25519', 'jwks_url'].includes(name))
  if (more) fail(`not valid: ${more} is not signed and stands in no attestation`)
  const jwk = JSON.parse(textOf(keysFile)).keys.find(({ kid, kty }) => kid === ed25519.key_id && kty === 'OKP')
  if (!jwk) fail(`not valid: the key ${ed25519.key_id} is not in ${keysFile}`)
  // A key id is the thumbprint of the key (RFC 7638), so nobody can publish another key under an id that you know.
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
