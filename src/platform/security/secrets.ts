import { createCipheriv, createDecipheriv, createHash, hash, hkdfSync, randomBytes } from 'node:crypto'

/** The same as base64 text, for look-ups on every call: the one-shot function makes no hash object. */
export function hashKeyText(key: string): string {
  return hash('sha256', key, 'base64')
}

/** SHA-256 of an API key: keys carry 192 random bits, so a plain hash cannot be guessed back. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** A key of 32 bytes for one purpose, derived from the master key. */
export function deriveKey(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), `brigade:${purpose}`, 32))
}

/** Seals what must be stored but never read by a thief of the database. */
export interface Sealer {
  /** AES-256-GCM. The associated data names the row that owns the value, so that a sealed text moved to another row does not open. */
  seal(plain: string, associatedData: string): string
  /** Throws when the text was changed, belongs to another row, or was sealed with a master key that is not known. */
  open(sealed: string, associatedData: string): string
}

const nonceBytes = 12
const tagBytes = 16

/** A sealer over the master key. Sealed form: `v1.<key id>.<base64url of nonce, ciphertext, tag>`; the key id makes rotation possible. */
export function makeSealer(masterKey: Buffer, olderKeys: readonly Buffer[] = []): Sealer {
  const keys = new Map([masterKey, ...olderKeys].map(key => [keyIdOf(key), deriveKey(key, 'seal')]))
  const currentId = keyIdOf(masterKey)
  return {
    seal(plain, associatedData) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', keys.get(currentId) ?? Buffer.alloc(0), nonce).setAAD(Buffer.from(associatedData))
      const body = Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `v1.${currentId}.${body.toString('base64url')}`
    },
    open(sealed, associatedData) {
      const [version, keyId, text] = sealed.split('.')
      const key = keys.get(keyId ?? '')
      if (version !== 'v1' || text === undefined || key === undefined) throw new Error('a sealed value needs a master key that this process does not have')
      const body = Buffer.from(text, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, nonceBytes)).setAAD(Buffer.from(associatedData))
      decipher.setAuthTag(body.subarray(body.length - tagBytes))
      return Buffer.concat([decipher.update(body.subarray(nonceBytes, body.length - tagBytes)), decipher.final()]).toString('utf8')
    },
  }
}

/** A name for a master key that does not help to find it: the first 8 hex characters of a derived value. */
export function keyIdOf(masterKey: Buffer): string {
  return deriveKey(masterKey, 'key-id').toString('hex').slice(0, 8)
}

/** 32 bytes from base64 or hex, or null when the text is neither. */
export function parseMasterKey(text: string): Buffer | null {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  return bytes.length === 32 ? bytes : null
}

/** A new master key as base64. */
export function newMasterKey(): string {
  return randomBytes(32).toString('base64')
}

/** What a person may see of a credential: a short start, an ellipsis, the last four characters; all stars when it is short. */
export function maskSecret(text: string): string {
  return text.length < 12 ? '****' : `${text.slice(0, 4)}…${text.slice(-4)}`
}
