import { useMutation } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type ReplyOf } from '../../api/call.ts'
import { invalidate } from '../../api/queries.ts'

/** What a key is for. */
export interface KeyWanted {
  readonly name: string
  /** The least scope that serves the purpose. */
  readonly scope: 'inference' | 'full'
}

type MadeKey = ReplyOf<'createKey'>

/** A key that the console makes for a purpose ends soon, so that nobody has to remember it. */
const days = 30
/** Maximum number of names that are tried when a key has the name. */
const namesMax = 9

/** Makes a key that ends after 30 days. A name that is taken gets a number. The reply has the secret, and nothing else ever has it. */
async function makeKey({ name, scope }: KeyWanted): Promise<MadeKey> {
  for (let number = 1; ; number++) {
    try {
      return await api('createKey', { body: { name: number === 1 ? name : `${name} ${number}`, scope, expires_days: days } })
    } catch (error) {
      if (apiErrorOf(error).code !== 'duplicate_key_name' || number === namesMax) throw error
    }
  }
}

/** Returns the act that makes a key. The caller shows the secret once and then calls `reset`, which forgets it. */
export function useMakeKey() {
  return useMutation({ mutationFn: makeKey, gcTime: 0, onSuccess: () => invalidate('listKeys', 'orgBudgets') })
}
