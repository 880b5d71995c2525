/** Checks signatures of the gateway in the browser. Decision 0891 says for whom this is enough. */

/** A public key as the gateway publishes it. */
export interface PublishedKey {
  readonly kid: string
  readonly x: string
}

/** Returns a value in its canonical form (RFC 8785), for values of JSON. The bytes of this form are signed. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  members.sort(([one], [other]) => (one < other ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

const encoder = new TextEncoder()

/** Returns the bytes of a text. */
export const bytesOf = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Returns the SHA-256 of bytes. */
export const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))

/** Returns bytes in hexadecimal. */
export const hexOf = (bytes: Uint8Array): string => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')

const base64Of = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')

function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), letter => letter.charCodeAt(0))
    // Several texts decode to the same bytes. Only the text that the gateway writes is valid.
    return base64Of(bytes) === text ? bytes : null
  } catch {
    return null
  }
}

/** Returns whether this page may check signatures. Browsers allow it over https and on the own computer. */
export const mayVerify = (): boolean => globalThis.crypto?.subtle !== undefined

/** Returns why the named key did not sign the payload. Null when it did. The id of a key is made from the key (RFC 7638), so that nobody swaps it. */
export async function signatureFault(payload: unknown, signed: { readonly key_id: string; readonly signature: string }, keys: readonly PublishedKey[]) {
  const key = keys.find(({ kid }) => kid === signed.key_id)
  if (key === undefined) return 'Its key is not among the published keys.'
  const thumbprint = base64Of(await sha256(bytesOf(canonical({ crv: 'Ed25519', kty: 'OKP', x: key.x }))))
  if (thumbprint !== key.kid) return 'Another key was published under its id.'
  const signature = fromBase64(signed.signature)
  const imported = await crypto.subtle.importKey('jwk', { kty: 'OKP', crv: 'Ed25519', x: key.x }, 'Ed25519', false, ['verify'])
  const isGenuine = signature !== null && (await crypto.subtle.verify('Ed25519', imported, signature, bytesOf(canonical(payload))))
  return isGenuine ? null : 'The signature does not belong to it.'
}
