/** Makes the request that asks the process with the database to check the HMAC of an attestation. */
import { canonicalBytes } from '../../gateway/compliance/attestation/attestation.ts'
import { attestationIn } from '../../gateway/compliance/attestation/verify.ts'

/**
 * Returns the arguments of the check from the text of an attestation. The payload is in the exact form that was signed. Throws an error whose message
 * is one line.
 */
export function checkArgsOf(text: string): { key_id: string; signature: string; payload: string } {
  const { key_id, signature, payload } = attestationIn(text)
  return { key_id, signature, payload: canonicalBytes(payload).toString() }
}
