/** The key that binds a token: its limits apply to the token, and the token ends with it. */
import type { Keys } from '../../gateway/keys/keys.ts'
import { fail } from '../../platform/errors.ts'
import type { Principal } from '../../platform/security/principal.ts'
import { rowId } from '../../platform/values/row-id.ts'
import { isAdmin } from '../authority.ts'

/** A key and its user. */
interface Binding {
  readonly keyId: number
  readonly userId: number | null
}

/**
 * Returns the key for a token that a caller mints. A full key binds with itself. A signed-in person names a key of any scope, because the session has the
 * right to mint and the key only bounds the token. Decision 0721 says why. Throws `forbidden` for other callers, `bad_request` and `not_found`.
 */
export async function bindingKey(keys: Pick<Keys, 'byId'>, principal: Principal, requested: number | undefined): Promise<Binding> {
  if (principal.kind === 'session') {
    if (requested === undefined)
      throw fail('bad_request', { message: 'key_id: name an API key of yours. Its limits bind the token, and the token ends with it.' })
    return liveKey(keys, principal, requested, isAdmin(principal))
  }
  if (principal.kind !== 'key' || principal.scope !== 'full') throw fail('forbidden', { message: 'Only an API key of scope full mints agent tokens.' })
  const { keyId, userId } = principal
  if (requested !== undefined && requested !== keyId) throw fail('bad_request', { message: `key_id: the calling key binds the token, and that is ${keyId}.` })
  return { keyId, userId }
}

/** Returns a key of scope full that tokens of a trust rule may use. It has the conditions of `liveKey`. */
export async function liveFullKey(...[keys, person, requested, mayTakeUnowned]: Parameters<typeof liveKey>): Promise<Binding> {
  const found = await liveKey(keys, person, requested, mayTakeUnowned)
  if (found.scope !== 'full') throw fail('bad_request', { message: 'key_id: must be a key of scope full that works.' })
  return found
}

/**
 * Returns a working key that tokens may use: one of the person, or one without a user when the person may take it. The tokens of a key read the memory of its
 * user. Throws `not_found` and `bad_request`.
 */
async function liveKey(
  keys: Pick<Keys, 'byId'>,
  { orgId, userId }: Pick<Principal, 'orgId' | 'userId'>,
  requested: number,
  mayTakeUnowned: boolean,
): Promise<Binding & { readonly scope: 'full' | 'inference' }> {
  const keyId = rowId(requested)
  const key = keyId === null ? null : await keys.byId(keyId)
  if (key === null || key.orgId !== orgId) throw fail('not_found', { message: 'There is no such key.' })
  if (key.state !== 'active') throw fail('bad_request', { message: 'key_id: must be a key that works.' })
  if (key.userId !== userId && !(key.userId === null && mayTakeUnowned))
    throw fail('bad_request', { message: 'key_id: must be a key of your own, or a key without a user: tokens act for the user of their key.' })
  return { keyId: key.id, userId: key.userId, scope: key.scope }
}
