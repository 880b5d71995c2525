/** What the process that owns the database is asked, to check the HMAC of an attestation. */
import { z } from 'zod'
import { canonicalBytes } from '../gateway/compliance/attestation.ts'
import { parseStrictJson } from '../gateway/compliance/strict-json.ts'
import { attestationText } from '../gateway/compliance/verify.ts'

const attestationShape = z.object({ alg: z.literal('HMAC-SHA256'), key_id: z.string(), signature: z.string() })

/** The arguments of the check, of the text of an attestation: what was signed, in the form in which it was. Throws an error of one line. */
export function checkArgsOf(text: string): { key_id: string; signature: string; payload: string } {
  const value = parseStrictJson(attestationText(text))
  const { data } = attestationShape.safeParse(value)
  if (data === undefined || typeof value !== 'object' || value === null || !Object.hasOwn(value, 'payload'))
    throw new Error('this is no attestation: it lacks alg HMAC-SHA256, key_id, signature or payload')
  return { key_id: data.key_id, signature: data.signature, payload: canonicalBytes((value as { payload: unknown }).payload).toString() }
}
