/** Lists every column with sealed values, and shows the operator how far a change of the master key is. Decision 0358 gives the reasons. */
import { signingKeyOwner } from '../agents/tokens/signing-keys.ts'
import type { AppDeps } from '../composition/deps.ts'
import { otherMasterKeys } from '../composition/foundation.ts'
import { signInOwner } from '../gateway/access/sign-in/sign-in.ts'
import { serverKeyOwner } from '../gateway/byok/custom-servers/custom-servers.ts'
import { providerKeyOwner } from '../gateway/byok/provider-keys.ts'
import { contentOwner } from '../gateway/inference/content-log/content-log.ts'
import { replyOwner } from '../gateway/inference/reply-cache/reply-cache.ts'
import { toolTokenOwner } from '../gateway/tools/oauth/connections/held-connection.ts'
import { toolStateOwner } from '../gateway/tools/oauth/connections/tool-connections.ts'
import { toolClientOwner } from '../gateway/tools/oauth/oauth-client.ts'
import { toolCredentialOwner } from '../gateway/tools/registry/tool-credential.ts'
import { webhookSecretOwner } from '../gateway/webhooks/webhook-secret.ts'
import { storeOwner } from '../memory/config/open-stores.ts'
import type { Db } from '../platform/db/db.ts'
import { type Resealed, type SealedColumn, SealedValues } from '../platform/db/sealed-queries.ts'
import { keyIdOf, makeSealer } from '../platform/security/secrets.ts'

const column = (table: string, name: string, keys: readonly string[], ownerOf: (...keys: string[]) => string): SealedColumn => ({
  table,
  column: name,
  keys: keys.map(key => {
    const [keyName = '', type] = key.split(' ')
    return { name: keyName, type: type === 'int' || type === 'bytea' || type === 'uuid' ? type : 'text' }
  }),
  ownerOf: values => ownerOf(...values),
})

const bytesOf = (text: string): Buffer => Buffer.from(text.replace(/^\\x/, ''), 'hex')

/** All columns with sealed values. Add a row for every new column. A test searches the whole schema for columns that are missing here. */
export const sealedValues: readonly SealedValues[] = [
  column('signing_keys', 'private_sealed', ['kid'], (kid = '') => signingKeyOwner(kid)),
  column('attestation_keys', 'sealed_private_key', ['key_id'], (id = '') => `attestation_keys:${id}:private_key`),
  column('attestation_keys', 'sealed_hmac_key', ['key_id'], (id = '') => `attestation_keys:${id}:hmac_key`),
  column('provider_keys', 'sealed', ['org_id int', 'provider_id'], (org, provider = '') => providerKeyOwner(Number(org), provider)),
  column('custom_endpoints', 'key_sealed', ['org_id int', 'slug'], (org, slug = '') => serverKeyOwner(Number(org), slug)),
  column('tool_server_credentials', 'value_sealed', ['org_id int', 'server_id uuid'], (org, server = '') => toolCredentialOwner(Number(org), server)),
  column('tool_oauth_clients', 'secret_sealed', ['org_id int', 'server_id uuid'], (org, server = '') => toolClientOwner(Number(org), server)),
  column('tool_connections', 'access_sealed', ['id uuid'], (id = '') => toolTokenOwner(id, 'access')),
  column('tool_connections', 'refresh_sealed', ['id uuid'], (id = '') => toolTokenOwner(id, 'refresh')),
  column('tool_oauth_states', 'verifier_sealed', ['state_hash bytea'], (hash = '') => toolStateOwner(bytesOf(hash))),
  column('webhook_endpoints', 'secret_sealed', ['id int'], id => webhookSecretOwner(Number(id))),
  column('memory_stores', 'sealed_credentials', ['org_id int'], org => storeOwner(Number(org))),
  column('sign_in_states', 'sealed', ['state_hash bytea'], (hash = '') => signInOwner(bytesOf(hash))),
  column('content_log', 'sealed', ['org_id int', 'request_id'], (org, request = '') => contentOwner(Number(org), request)),
  column('reply_cache', 'sealed', ['org_id int', 'mac bytea'], (org, mac = '') => replyOwner(Number(org), bytesOf(mac))),
].map(made => new SealedValues(made))

/** Which sealed values of an installation belong to which master key. */
export interface MasterKeyStatus {
  /** Id of the key that seals new values. The id does not reveal the key. */
  readonly current: string
  /** Ids of other keys that can open values (MASTER_KEY_OTHER, master.key.old). */
  readonly others: readonly string[]
  /** Number of values by key. */
  readonly inUse: readonly {
    readonly keyId: string
    readonly values: number
    readonly state: 'current' | 'other' | 'unknown'
    readonly where: readonly string[]
  }[]
}

/** The master key of this process and the values that it sealed. */
export class MasterKeys {
  readonly #deps: Pick<AppDeps, 'db' | 'masterKey'>
  readonly #others: readonly Buffer[]

  constructor(deps: Pick<AppDeps, 'db' | 'masterKey' | 'dataDir' | 'config'>) {
    this.#deps = deps
    this.#others = otherMasterKeys(deps.config, deps.dataDir)
  }

  async status(): Promise<MasterKeyStatus> {
    const current = keyIdOf(this.#deps.masterKey)
    const others = [...new Set(this.#others.map(keyIdOf))].filter(id => id !== current)
    const inUse = [...(await countsByKey(this.#deps.db))].map(([keyId, { values, where }]) => ({
      keyId,
      values,
      state: keyId === current ? ('current' as const) : others.includes(keyId) ? ('other' as const) : ('unknown' as const),
      where,
    }))
    return { current, others, inUse }
  }

  /** Seals the values again that are sealed under another known key. */
  async reseal(): Promise<Resealed[]> {
    const { db, masterKey } = this.#deps
    const sealer = makeSealer(masterKey, this.#others)
    const done: Resealed[] = []
    for (const values of sealedValues) done.push(await values.reseal(db, sealer, keyIdOf(masterKey)))
    return done
  }
}

/** Returns the number of sealed values by the id of their master key. */
export async function countsByKey(db: Db): Promise<ReadonlyMap<string, { readonly values: number; readonly where: readonly string[] }>> {
  const found = new Map<string, { values: number; where: string[] }>()
  for (const sealed of sealedValues)
    for (const [keyId, count] of await sealed.counts(db)) {
      const entry = found.get(keyId) ?? { values: 0, where: [] }
      entry.values += count
      entry.where.push(`${sealed.table}.${sealed.column}`)
      found.set(keyId, entry)
    }
  return found
}
