import { createHash } from 'node:crypto'

/** Returns the `kid` of an Ed25519 key (RFC 7638 over RFC 8037, with the required members in this order). It identifies the key. */
export const thumbprintOf = (x: string): string =>
  createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url')
