import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db/db.ts'
import type { ControlLog } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import type { Log } from '../../platform/observe/log.ts'
import { Secret } from '../../platform/security/secret.ts'
import { maskSecret, type Sealer } from '../../platform/security/secrets.ts'
import { type GivenCredentials, keptCredentials } from '../cloud/given-credentials.ts'
import type { Place, Provider } from '../providers/provider.ts'
import { credentialsFor, providerAt, providerAtSaved, savedCredentials } from './cloud-keys.ts'
import { ownersOf } from './key-owner.ts'
import { orgRoutingChanged, type SavedKey } from './org-credentials.ts'
import type { ProbeOutcome } from './probe.ts'
import {
  confirmKey,
  deleteKey,
  describeKey,
  findSealedKey,
  listSavedKeys,
  type SavedKeyRow,
  type SealedKeyRow,
  saveKey,
  sealedKeys,
} from './provider-key-queries.ts'

export interface ProviderKeysDeps {
  readonly db: Db
  readonly clock: Clock
  readonly log: Log
  readonly sealer: Sealer
  readonly controlLog: ControlLog
  /** The setting BYOK. When it is false, keys can neither be saved nor used. Saved keys stay in the database. */
  readonly enabled: boolean
  /** The providers of the current catalog by id. */
  providers(): ReadonlyMap<string, Provider>
  /** Tests a key, or credentials in its place. */
  probe(provider: Provider, key: Secret, credentials: GivenCredentials | null): Promise<ProbeOutcome>
}

/** The parameters of a save. When the key exists, omitted values do not change. */
export interface KeyParams {
  readonly key?: string | undefined
  /** Credentials of a cloud, in place of a key. */
  readonly credentials?: Readonly<Record<string, unknown>> | undefined
  /** The values of the provider's address. They are saved with a key only, because a saved key never goes to another address. */
  readonly values?: Place | undefined
  /** Models or deployments that the provider does not list. */
  readonly models?: readonly string[] | undefined
  readonly label?: string | null | undefined
  readonly alwaysUse?: boolean | undefined
}

/** A saved key in the reply to its save. */
export interface SavedView {
  readonly label: string | null
  readonly mask: string
  readonly alwaysUse: boolean
  /** False when the provider would have given the same reply to any key. */
  readonly verified: boolean
  readonly modelsCount: number
}

const idShape = /^[a-z0-9][a-z0-9._-]{0,63}$/
/** The form of a key that can be sent in a header without a change. */
const sendable = /^[\x21-\x7e]{1,1000}$/

/** Keys of organisations at providers. They are tested when they are saved, sealed in the database, and masked in every reply. */
export class ProviderKeys {
  readonly #deps: ProviderKeysDeps
  constructor(deps: ProviderKeysDeps) {
    this.#deps = deps
  }

  /** Throws `byok_disabled` while own keys are switched off. */
  requireEnabled(): void {
    if (!this.#deps.enabled) throw fail('byok_disabled', { message: 'Own provider keys are switched off here. The operator switches them on with BYOK=on.' })
  }

  /** Returns the providers that accept callers' keys, sorted by name. */
  accepting(): readonly Provider[] {
    return [...this.#deps.providers().values()].filter(({ byok }) => byok).sort((a, b) => a.name.localeCompare(b.name, 'en'))
  }

  /** Returns the saved keys of an organisation, masked. The list includes keys at providers that are no longer in the catalog. */
  list(orgId: number): Promise<SavedKeyRow[]> {
    return this.#deps.db.many(listSavedKeys, orgId)
  }

  /**
   * Saves a key when its provider accepts it. Without `key`, it changes the label and the use of the saved key. When the new key cannot be saved, the
   * previous key stays. Throws `unknown_provider`, `bad_key` and `unavailable`. Throws `bad_request` when there is no key to change.
   */
  async save(orgId: number, providerId: string, params: KeyParams): Promise<SavedView> {
    const row = this.#provider(providerId)
    if (params.key === undefined && params.credentials === undefined) return await this.#describe(orgId, row, params)
    const place = params.values ?? {}
    const provider = providerAt(row, place)
    const { key, credentials, mask } = this.#checked(provider, params)
    const outcome = await this.#deps.probe(provider, key, credentials)
    if (outcome.kind === 'rejected')
      throw fail('bad_key', { message: `${provider.name} refused this key. Nothing was changed; check that it is whole and still active.` })
    if (outcome.kind === 'unreachable')
      throw fail('unavailable', { message: `The key could not be verified: ${provider.name} could not be reached (${outcome.why}). Nothing was saved.` })
    const now = new Date(this.#deps.clock.nowMs())
    const sealed = this.#deps.sealer.seal(key.reveal(), providerKeyOwner(orgId, provider.id))
    const { label, alwaysUse, models: named = [] } = params
    const models = [...new Set([...named, ...outcome.models])]
    const saved = await this.#change(orgId, tx =>
      tx.one(
        saveKey,
        orgId,
        provider.id,
        sealed,
        mask,
        models,
        outcome.proven ? now : null,
        now,
        label !== undefined,
        label ?? null,
        alwaysUse ?? null,
        JSON.stringify(place),
        named,
      ),
    )
    return { ...saved, mask, verified: outcome.proven, modelsCount: models.length }
  }

  /** Tests the saved key again. When the provider accepts it, its list of models is updated. Throws `unknown_provider` and `not_found`. */
  async test(orgId: number, providerId: string): Promise<ProbeOutcome['kind']> {
    const provider = this.#provider(providerId)
    const row = await this.#saved(orgId, provider)
    const saved = this.#opened(orgId, row, provider)
    if (saved === null) throw fail('not_found', { message: `The saved key at ${provider.name} cannot be used any more. Save it again.` })
    const outcome = await this.#deps.probe(saved.provider ?? provider, saved.key, saved.credentials ?? null)
    if (outcome.kind === 'ok') {
      const verifiedAt = outcome.proven ? new Date(this.#deps.clock.nowMs()) : null
      const models = [...new Set([...row.namedModels, ...outcome.models])]
      await this.#change(orgId, tx => tx.exec(confirmKey, orgId, provider.id, row.sealed, models, verifiedAt))
    }
    return outcome.kind
  }

  /** Returns the ids of the models found with the saved key, in the form that callers send: `provider/model`. Throws `unknown_provider` and `not_found`. */
  async models(orgId: number, providerId: string): Promise<readonly string[]> {
    const provider = this.#provider(providerId)
    return (await this.#saved(orgId, provider)).models.map(id => `${provider.id}/${id}`)
  }

  /** Removes a saved key. This works also for a provider that is no longer in the catalog. Throws `unknown_provider` and `not_found`. */
  async remove(orgId: number, providerId: string): Promise<void> {
    const count = idShape.test(providerId) ? await this.#change(orgId, tx => tx.exec(deleteKey, orgId, providerId)) : 0
    if (count === 0) throw notSaved(this.#provider(providerId))
  }

  /** Returns the keys of an organisation in plain text, by provider id. A key that cannot be opened is left out and logged. */
  async ofOrg(orgId: number): Promise<ReadonlyMap<string, SavedKey>> {
    const keys = new Map<string, SavedKey>()
    if (!this.#deps.enabled) return keys
    for (const row of await this.#deps.db.many(sealedKeys, orgId)) {
      const saved = this.#opened(orgId, row, this.#deps.providers().get(row.providerId))
      if (saved !== null) keys.set(row.providerId, saved)
    }
    return keys
  }

  #provider(providerId: string): Provider {
    const provider = this.#deps.providers().get(providerId)
    if (provider === undefined || !provider.byok)
      throw fail('unknown_provider', { message: 'No provider of that id takes keys of your own. GET /me/byok lists those that do.' })
    return provider
  }

  /** Returns the checked key or the checked credentials. `key` is then their text, which is sealed. */
  #checked(
    provider: Provider,
    { key, credentials }: KeyParams,
  ): { readonly key: Secret; readonly credentials: GivenCredentials | null; readonly mask: string } {
    if (credentials === undefined) {
      const checked = this.#checkedKey(provider, key ?? '')
      return { key: checked, credentials: null, mask: maskSecret(checked.reveal()) }
    }
    if (key !== undefined) throw fail('bad_request', { message: 'Send key or credentials, not both.' })
    const read = credentialsFor(provider, credentials)
    return { key: new Secret(keptCredentials(read)), credentials: read, mask: read.name }
  }

  /** The key is trimmed, because people paste keys with a line break at the end. */
  #checkedKey(provider: Provider, given: string): Secret {
    const key = given.trim()
    if (!sendable.test(key)) throw fail('bad_key', { message: 'A key is 1 to 1000 printable characters without spaces.' })
    if (provider.auth === 'identity' || (provider.identity !== undefined && key.startsWith('{')))
      throw fail('bad_key', { message: `That is not a key of ${provider.name}. Send credentials as an object, in "credentials". It was sent nowhere.` })
    if (provider.keyShape !== null && !new RegExp(provider.keyShape).test(key))
      throw fail('bad_key', { message: `That does not look like a key of ${provider.name}: expected the form ${provider.keyShape}. It was sent nowhere.` })
    const secret = new Secret(key)
    // The check of shapes applies only to a provider with a known key shape. A provider without one may accept keys of other providers, because it
    // may relay calls to them.
    const isKnown = (provider.keySign ?? provider.keyShape) !== null
    const owners = isKnown ? ownersOf(secret, this.#deps.providers().values()) : []
    if (owners.length > 0 && !owners.includes(provider.id))
      throw fail('bad_key', { message: `That looks like a key of ${owners.join(' or ')}, not of ${provider.name}. It was sent nowhere.` })
    return secret
  }

  async #describe(orgId: number, provider: Provider, { label, alwaysUse, values, models }: KeyParams): Promise<SavedView> {
    if (values !== undefined || models !== undefined)
      throw fail('bad_request', { message: 'Send values and models together with the key or the credentials: a saved key never goes to another address.' })
    if (label === undefined && alwaysUse === undefined) throw fail('bad_request', { message: 'Send key, or label or always_use to change a saved key.' })
    const row = await this.#change(orgId, tx => tx.maybe(describeKey, orgId, provider.id, label !== undefined, label ?? null, alwaysUse ?? null))
    if (row === null) throw fail('bad_request', { message: `key is required: none is saved at ${provider.name} yet.` })
    const { verifiedAt, ...view } = row
    return { ...view, verified: verifiedAt !== null }
  }

  async #saved(orgId: number, provider: Provider): Promise<SealedKeyRow> {
    const row = await this.#deps.db.maybe(findSealedKey, orgId, provider.id)
    if (row === null) throw notSaved(provider)
    return row
  }

  /** Returns the saved key with its credentials and its place. Null when it cannot be opened, or when it does not fit the provider any more. */
  #opened(orgId: number, row: SealedKeyRow, provider: Provider | undefined): SavedKey | null {
    try {
      const text = this.#deps.sealer.open(row.sealed, providerKeyOwner(orgId, row.providerId))
      const key = { key: new Secret(text), alwaysUse: row.alwaysUse, models: row.models }
      if (provider === undefined) return key
      const at = providerAtSaved(provider, row.place)
      if (at === null) return null
      const credentials = savedCredentials(provider, text)
      return { ...key, ...(at === provider ? {} : { provider: at }), ...(credentials === null ? {} : { credentials }) }
    } catch {
      this.#deps.log.warn('provider_key_unreadable', { orgId, provider: row.providerId })
      return null
    }
  }

  #change<T>(orgId: number, write: (tx: Parameters<Parameters<Db['tx']>[0]>[0]) => Promise<T>): Promise<T> {
    return this.#deps.controlLog.change(async tx => ({ value: await write(tx), news: [{ kind: orgRoutingChanged, ref: String(orgId) }] }))
  }
}

/** Returns the name that ties a sealed key to its row. A key that is copied to another row cannot be opened. */
export const providerKeyOwner = (orgId: number, providerId: string): string => `provider_key:${orgId}:${providerId}`

const notSaved = (provider: Provider): Error => fail('not_found', { message: `No key is saved at ${provider.name}.` })
