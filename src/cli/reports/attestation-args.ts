/** Makes the request to the process that owns the database, which checks the HMAC of an attestation. */
import { canonicalBytes } from '../../gateway/compliance/attestation/attestation.ts'
import { attestationIn } from '../../gateway/compliance/attestation/verify.ts'

/** Returns the arguments of the check from the text of an attestation: the signed content in its signed form. Throws an error of one line. */
export function checkArgsOf(text: string): { key_id: string; signature: string; payload: string } {
  const { key_id, signature, payload } = attestationIn(text)
  return { key_id, signature, payload: canonicalBytes(payload).toString() }
}
