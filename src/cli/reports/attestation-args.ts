/** What the process that owns the database is asked, to check the HMAC of an attestation. */
import { canonicalBytes } from '../../gateway/compliance/attestation/attestation.ts'
import { attestationIn } from '../../gateway/compliance/attestation/verify.ts'

/** The arguments of the check, of the text of an attestation: what was signed, in the form in which it was. Throws an error of one line. */
export function checkArgsOf(text: string): { key_id: string; signature: string; payload: string } {
  const { key_id, signature, payload } = attestationIn(text)
  return { key_id, signature, payload: canonicalBytes(payload).toString() }
}
