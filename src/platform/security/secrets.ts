import { createCipheriv, createDecipheriv, createHash, hash, hkdfSync, randomBytes } from 'node:crypto'

/** Like `hashKey`, but as base64 text. It runs for every call, so it uses the one-shot function, which makes no hash object. */
export function hashKeyText(key: string): string {
  return hash('sha256', key, 'base64')
}

/** Returns the SHA-256 of an API key. Keys have 192 random bits, so nobody can find a key from a plain hash. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** Derives a key of 32 bytes for one purpose from the master key. */
export function deriveKey(masterKey: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', masterKey, Buffer.alloc(0), `brigade:${purpose}`, 32))
}

/** Seals values for the database, so that a copy of the database alone does not reveal them. */
export interface Sealer {
  /** Seals with AES-256-GCM. The associated data names the row of the value, so that a sealed value cannot be opened in another row. */
  seal(plain: string, associatedData: string): string
  /** Opens a sealed value. Throws when it was changed, belongs to another row, or was sealed with an unknown master key. */
  open(sealed: string, associatedData: string): string
}

const nonceBytes = 12
const tagBytes = 16

/**
 * Makes a sealer with the master key. Sealed form: `v1.<key id>.<base64url of nonce, ciphertext, tag>`. The key id makes rotation possible.
 */
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

/** Returns an id for a master key, which does not reveal the key: the first 8 hex characters of a derived value. */
export function keyIdOf(masterKey: Buffer): string {
  return deriveKey(masterKey, 'key-id').toString('hex').slice(0, 8)
}

/** Reads 32 bytes from base64 or hex. Null when the text is neither. */
export function parseMasterKey(text: string): Buffer | null {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  return bytes.length === 32 ? bytes : null
}

/** Returns a new master key as base64. */
export function newMasterKey(): string {
  return randomBytes(32).toString('base64')
}

/** Returns the part of a credential that may be shown: its first and last four characters, or only stars when it is short. */
export function maskSecret(text: string): string {
  return text.length < 12 ? '****' : `${text.slice(0, 4)}…${text.slice(-4)}`
}
