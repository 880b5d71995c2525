/** Whether an attestation is what a gateway signed, with nothing but its text and the published keys. */
import { createPublicKey, verify } from 'node:crypto'
import { isObject, type JsonObject } from '../../platform/json.ts'
import { canonicalBytes } from './attestation.ts'
import { AmbiguousJsonError, parseStrictJson } from './strict-json.ts'

export type Verdict = { readonly isValid: true; readonly keyId: string; readonly payload: JsonObject } | { readonly isValid: false; readonly why: string }

/** A text that holds an attestation: its JSON, or a report with the JSON in its last block. */
export function attestationText(text: string): string {
  if (text.trimStart().startsWith('{')) return text
  return [...text.matchAll(/^```json\r?\n(\{[^\r\n]*\})\r?\n```\s*$/gm)].at(-1)?.[1] ?? text
}

/**
 * Checks the Ed25519 signature of the text of an attestation with a key set (`{"keys":[…]}`). What stands beside the payload is believed in
 * nothing: the signature names its key, and the key comes from the set. Never throws.
 */
export function verifyAttestation(text: string, keys: unknown): Verdict {
  try {
    return checked(parseStrictJson(attestationText(text)), keys)
  } catch (thrown) {
    if (thrown instanceof AmbiguousJsonError) return invalid(`this is no attestation to rely on: ${thrown.message}`)
    return invalid('this is no attestation: it cannot be brought into the form that is signed')
  }
}

function checked(attestation: unknown, keys: unknown): Verdict {
  const [payload, signed] = [own(attestation, 'payload'), own(attestation, 'ed25519')]
  const [keyId, signature] = [own(signed, 'key_id'), own(signed, 'signature')]
  if (!isObject(payload) || typeof keyId !== 'string' || typeof signature !== 'string')
    return invalid('this is no attestation with an Ed25519 signature: it lacks payload, ed25519.key_id or ed25519.signature')
  if (own(signed, 'alg') !== 'EdDSA') return invalid('ed25519.alg is not EdDSA')
  const key = keyOf(keys, keyId)
  if (key === null) return invalid(`it names the key ${keyId.slice(0, 100)}, which is not among the keys that were given`)
  const bytes = Buffer.from(signature, 'base64url')
  // Base64url can say the same bytes in several ways; one of them is what the gateway wrote.
  if (bytes.toString('base64url') !== signature || !verify(null, canonicalBytes(payload), key, bytes))
    return invalid('the signature does not belong to this payload: it was changed, or another key signed it')
  return { isValid: true, keyId, payload }
}

function keyOf(keys: unknown, keyId: string): ReturnType<typeof createPublicKey> | null {
  const list = own(keys, 'keys')
  const found: unknown = Array.isArray(list)
    ? list.find(jwk => own(jwk, 'kid') === keyId && own(jwk, 'kty') === 'OKP' && own(jwk, 'crv') === 'Ed25519')
    : undefined
  const x = own(found, 'x')
  return typeof x === 'string' ? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }) : null
}

const own = (value: unknown, name: string): unknown => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined)

const invalid = (why: string): Verdict => ({ isValid: false, why })
