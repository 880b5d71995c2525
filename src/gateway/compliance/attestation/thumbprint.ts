import { createHash } from 'node:crypto'

/** Returns the `kid` that identifies an Ed25519 key. It is the thumbprint of RFC 7638 over RFC 8037, which requires the members in this order. */
export const thumbprintOf = (x: string): string =>
  createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url')
