import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db/db.ts'
import type { ControlLog, NewsItem } from '../../platform/db/db-control-log.ts'
import { fail } from '../../platform/errors.ts'
import { orgRoutingChanged } from '../byok/org-credentials.ts'
import type { CatalogSnapshot } from '../catalog/model.ts'
import { presetOf } from '../catalog/virtual-models.ts'
import { type ChainStep, parseChainSteps } from '../wire/chat/router-fields.ts'
import { type ChainFilter, pageOfChains } from './chain-list.ts'
import { isCustomReference, splitOwnId } from './own-models.ts'
import { deleteChain, findChain, listChains, type StoredStep, saveChain } from './queries.ts'

/** A step of a chain as it is stored and shown. */
export type { StoredStep }

/** A chain that replaces the default routing of a model for a whole organisation. */
export interface Chain {
  readonly model: string
  /** The steps in normal form: each step is an object, and contains `provider` only when the step names one. */
  readonly steps: readonly StoredStep[]
}

export interface ChainsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly controlLog: ControlLog
  catalog(): CatalogSnapshot
  /** Returns the references (`byoe:<slug>`) of the servers that an organisation has registered. */
  customReferences(orgId: number): Promise<ReadonlySet<string>>
}

/**
 * Saved fallback chains: at most one for each model and organisation. A change applies in this process immediately, and in other processes within a
 * second. Decision 0134 gives the reasons.
 */
export class Chains {
  readonly #deps: ChainsDeps
  constructor(deps: ChainsDeps) {
    this.#deps = deps
  }

  /** Returns the chains of an organisation by model id, in the form that routing uses. */
  async ofOrg(orgId: number): Promise<ReadonlyMap<string, readonly ChainStep[]>> {
    const rows = await this.#deps.db.many(listChains, orgId)
    return new Map(rows.map(({ modelId, steps }) => [modelId, steps.map(({ model, provider }) => ({ model, provider: provider ?? null }))]))
  }

  /** Returns a page of the chains that a filter chooses, and the cursor of the next page. Throws `bad_request` for an invalid cursor. */
  async list(orgId: number, filter: ChainFilter): Promise<{ chains: Chain[]; nextCursor: string | null }> {
    const { chains, nextCursor } = await pageOfChains(this.#deps.db, orgId, filter)
    return { chains: chains.map(({ modelId, steps }) => ({ model: modelId, steps })), nextCursor }
  }

  /** Returns the chain of a model. Throws `not_found`. */
  async get(orgId: number, modelId: string): Promise<Chain> {
    const row = await this.#deps.db.maybe(findChain, orgId, modelId)
    if (row === null) throw noChain()
    return { model: row.modelId, steps: row.steps }
  }

  /** Saves a chain and replaces an earlier one. `steps` is the value that the client sent. Throws `bad_model` and `bad_steps`. */
  async save(orgId: number, userId: number | null, modelId: string, steps: unknown): Promise<Chain> {
    this.checkModel(modelId)
    const chain = { model: modelId, steps: await this.stepsOf(orgId, steps) }
    checkDifferent(chain.steps)
    await this.#deps.controlLog.change(async tx => ({ value: undefined, news: [await this.saveIn(tx, orgId, userId, chain)] }))
    return chain
  }

  /** Saves a checked chain in the caller's transaction. The caller appends the returned event to the control log. */
  async saveIn(tx: Tx, orgId: number, userId: number | null, { model, steps }: Chain): Promise<NewsItem> {
    await tx.exec(saveChain, orgId, model, JSON.stringify(steps), userId, new Date(this.#deps.clock.nowMs()))
    return changed(orgId)
  }

  /** Throws `bad_model` for a virtual id, and for an id that the catalog does not contain. */
  checkModel(modelId: string): void {
    const model = this.#deps.catalog().models.get(modelId)
    if (!model || model.kind === 'virtual')
      throw fail('bad_model', { message: 'A chain belongs to one model of the catalog, not to a virtual id. GET /v1/models lists the ids.' })
  }

  /** Checks and normalises the steps that a client sent, for one organisation. Throws `bad_steps`. */
  async stepsOf(orgId: number, steps: unknown): Promise<readonly StoredStep[]> {
    const isCustom = parseChainSteps(steps, 'steps').some(({ provider }) => provider !== null && isCustomReference(provider))
    return this.stepsWith(isCustom ? await this.references(orgId) : noReferences, steps)
  }

  /**
   * Returns the references (`byoe:<slug>`) of the servers that an organisation has registered. It reads the database and must not be called inside a
   * transaction.
   */
  references(orgId: number): Promise<ReadonlySet<string>> {
    return this.#deps.customReferences(orgId)
  }

  /** Does the same as `stepsOf`, with references that the caller has read before. */
  stepsWith(references: ReadonlySet<string>, steps: unknown): readonly StoredStep[] {
    const parsed = parseChainSteps(steps, 'steps')
    for (const [index, step] of parsed.entries()) this.#check(step, `steps[${index}]`, references)
    return parsed.map(step => (step.provider === null ? { model: step.model } : { model: step.model, provider: step.provider }))
  }

  /** Deletes the chain of a model, so that the default routing applies again. Throws `not_found`. */
  async remove(orgId: number, modelId: string): Promise<void> {
    await this.#deps.controlLog.change(async tx => {
      if ((await tx.maybe(deleteChain, orgId, modelId)) === null) throw noChain()
      return { value: undefined, news: [changed(orgId)] }
    })
  }

  /**
   * Throws `bad_steps` unless the ids of a step exist. It does not check whether the gateway can serve the step, because keys and servers change.
   * Each call checks that.
   */
  #check({ model, provider }: ChainStep, at: string, references: ReadonlySet<string>): void {
    const catalog = this.#deps.catalog()
    const isKnown = presetOf(model) !== undefined || catalog.models.has(model) || splitOwnId(model, catalog) !== null
    if (!isKnown)
      throw fail('bad_steps', { message: `"${at}.model" is neither an id of GET /v1/models nor "provider/model-id" of a provider that takes your own keys.` })
    if (provider === null || catalog.providers.has(provider) || references.has(provider)) return
    throw fail('bad_steps', {
      message: isCustomReference(provider)
        ? `"${at}.provider": there is no endpoint of that slug. GET /me/endpoints lists them.`
        : `"${at}.provider": there is no such provider. GET /v1/providers lists the ids.`,
    })
  }
}

/**
 * Throws `bad_steps` when a step occurs twice, because the same step would fail again. Chains that were saved before this rule stay valid, and a
 * collection may contain a step twice.
 */
function checkDifferent(steps: readonly StoredStep[]): void {
  for (const [index, { model, provider }] of steps.entries()) {
    const first = steps.findIndex(step => step.model === model && step.provider === provider)
    if (first < index) throw fail('bad_steps', { message: `"steps[${index}]" is the same as "steps[${first}]". Take one of the two out.` })
  }
}

const noReferences: ReadonlySet<string> = new Set()
const noChain = () => fail('not_found', { message: 'No chain is saved for this model. GET /me/routing lists those that are.' })
const changed = (orgId: number) => ({ kind: orgRoutingChanged, ref: String(orgId) })
