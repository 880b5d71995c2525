/** Verifies that a gateway signed an attestation. It needs only the text of the attestation and the published keys. */
import { createPublicKey, verify } from 'node:crypto'
import { z } from 'zod'
import { isObject, type JsonObject } from '../../../platform/values/json.ts'
import { canonicalBytes } from './attestation.ts'
import { attestationReport } from './attestation-report.ts'
import { type Attestation, attestation } from './attestation-shape.ts'
import { AmbiguousJsonError, parseStrictJson } from './strict-json.ts'
import { thumbprintOf } from './thumbprint.ts'

export type Verdict = { readonly isValid: true; readonly keyId: string; readonly payload: JsonObject } | { readonly isValid: false; readonly why: string }

/** The pattern that every name in an attestation matches. */
const names = /^[a-z][a-z0-9_]*$/
/** The members that an attestation may have. An additional member beside the payload would look signed although no signature covers it. */
const parts = z.strictObject({ ...attestation.shape, payload: z.record(z.string(), z.unknown()), ed25519: z.strictObject(attestation.shape.ed25519.shape) })

/**
 * Reads the attestation from a text. The text is its JSON, or a report that matches the JSON in the last block of the report. This function checks no
 * signature. Throws AmbiguousJsonError for a text that is not an attestation or that can be read in two ways.
 */
export function attestationIn(text: string): z.output<typeof parts> {
  const isReport = !text.trimStart().startsWith('{')
  const json = isReport ? ([...text.matchAll(/^```json\r?\n(\{[^\r\n]*\})\r?\n```\s*$/gm)].at(-1)?.[1] ?? text) : text
  const value = parseStrictJson(json, names)
  const { data, error } = parts.safeParse(value)
  if (data === undefined) throw new AmbiguousJsonError(`${error.issues[0]?.path.join('.') ?? ''}: ${error.issues[0]?.message}`.replace(/^: /, ''))
  if (isReport && !isReportOf(value, text)) throw new AmbiguousJsonError(otherReport)
  return data
}

const otherReport =
  'its text is not the report of the JSON in its last block: it was changed, or another version of brigade wrote it. Only that JSON is signed: check it alone, and go by it'

function isReportOf(value: unknown, text: string): boolean {
  return attestation.safeParse(value).success && attestationReport(value as Attestation).trim() === text.replaceAll('\r\n', '\n').trim()
}

/**
 * Checks the Ed25519 signature of an attestation against a key set (`{"keys":[…]}`). The signature names its key, and the key itself must be in the
 * set. Trust only the payload of the attestation. Never throws.
 */
export function verifyAttestation(text: string, keys: unknown): Verdict {
  try {
    return checked(attestationIn(text), keys)
  } catch (thrown) {
    if (thrown instanceof AmbiguousJsonError) return invalid(`this is no attestation to rely on: ${thrown.message}`)
    return invalid('this is no attestation: it cannot be brought into the form that is signed')
  }
}

function checked({ payload, ed25519: { key_id: keyId, signature } }: ReturnType<typeof attestationIn>, keys: unknown): Verdict {
  const why = signatureFault(canonicalBytes(payload), keyId, signature, keys)
  return why === null ? { isValid: true, keyId, payload } : invalid(why)
}

/** Returns why the named key of a key set did not sign these bytes. Null when it did. */
export function signatureFault(bytes: Buffer, keyId: string, signature: string, keys: unknown): string | null {
  const key = keyOf(keys, keyId)
  if (key === 'another') return `the key set has another key under the id ${keyId.slice(0, 100)}: ids are made from keys, so somebody has changed it`
  if (key === null) return `it names the key ${keyId.slice(0, 100)}, which is not among the keys that were given`
  const signed = Buffer.from(signature, 'base64url')
  // Several base64url texts decode to the same bytes. Only the text that the gateway writes is valid.
  if (signed.toString('base64url') === signature && verify(null, bytes, key, signed)) return null
  return 'the signature does not belong to this payload: it was changed, or another key signed it'
}

function keyOf(keys: unknown, keyId: string): ReturnType<typeof createPublicKey> | 'another' | null {
  const list = own(keys, 'keys')
  const found: unknown = Array.isArray(list)
    ? list.find(jwk => own(jwk, 'kid') === keyId && own(jwk, 'kty') === 'OKP' && own(jwk, 'crv') === 'Ed25519')
    : undefined
  const x = own(found, 'x')
  if (typeof x !== 'string') return null
  return thumbprintOf(x) === keyId ? createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }) : 'another'
}

const own = (value: unknown, name: string): unknown => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined)

const invalid = (why: string): Verdict => ({ isValid: false, why })
