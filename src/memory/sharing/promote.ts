/** Promotion: the one way in which records are written, by an owner or admin who vouches for them. */
import { type Db, statement } from '../../platform/db/db.ts'
import { fail, toGatewayError } from '../../platform/errors.ts'
import type { Conditions, ConfiguredStore, MemoryCall } from '../access/memory-call.ts'
import { type MemoryKey, parseKey, parseNewKey } from '../memory-key.ts'
import type { MemoryObjects } from '../objects/objects.ts'

export interface PromotionDeps {
  readonly db: Db
  readonly objects: Pick<MemoryObjects, 'write'>
  /** Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
}

/** What is to become a record. The caller has checked that the promoter is an owner or admin. */
export interface PromotionParams {
  /** The workspace whose record it is; undefined: of the organisation; null: an id that no workspace can have. */
  readonly workspaceId: number | null | undefined
  /** One segment below records/. A record of several segments that exists already may be replaced. */
  readonly name: string
  readonly content: string | undefined
  /** Keys that the content was made from, as the promoter says. */
  readonly sourceKeys: readonly string[]
}

/** Bytes of all sources together, encoded. Stores take 2 KB of metadata for an object, and the rest of the provenance needs its part. */
const sourcesBytesMax = 1_024

export class Promotions {
  readonly #deps: PromotionDeps

  constructor(deps: PromotionDeps) {
    this.#deps = deps
  }

  /**
   * Writes the record, over the one of that name if there is one. Throws `memory_not_configured`, `bad_name`, `bad_request`,
   * `bad_memory_key` (a source), `not_found` (no such workspace, or archived), and what a write throws.
   */
  async promote(call: MemoryCall, params: PromotionParams, conditions: Conditions): Promise<{ key: string; etag: string }> {
    const { db, objects, configured } = this.#deps
    const { orgId, userId } = call.principal
    await configured(orgId)
    const key = recordKey(params)
    const sources = sourcesOf(params.sourceKeys)
    if (params.content === undefined) throw fail('bad_request', { message: 'Field "content": the text of the record is needed.' })
    if (!params.content.isWellFormed()) throw fail('bad_request', { message: 'Field "content": not well-formed Unicode (a lone surrogate).' })
    if (params.workspaceId !== undefined && (params.workspaceId === null || (await db.maybe(findLiveWorkspace, orgId, params.workspaceId)) === null))
      throw fail('not_found', { message: 'There is no such workspace, or it is archived. GET /me/workspaces lists them.' })
    if (params.name.includes('/') && (await db.maybe(findRecord, orgId, key)) === null)
      throw fail('bad_name', {
        message: 'Field "name": a new record has no slash in its name, for example security.md. Only a record that is there already keeps one.',
      })
    const metadata = { 'br-promoted-by': String(userId), ...(sources === '' ? {} : { 'br-sources': sources }) }
    const { etag } = await objects.write(call, key, Buffer.from(params.content), conditions, { action: 'promote', metadata })
    return { key, etag }
  }
}

/** The key of a record. Throws `bad_name` that says what is wrong with the name. */
function recordKey({ workspaceId, name }: PromotionParams): MemoryKey {
  if (name === '') throw fail('bad_name', { message: 'Field "name": the record needs a name, for example security.md.' })
  try {
    return parseNewKey(`${workspaceId === undefined ? 'org' : `workspaces/${workspaceId ?? 0}`}/records/${name}`)
  } catch (error) {
    throw fail('bad_name', { message: `Field "name": ${toGatewayError(error).message}`, cause: error })
  }
}

/**
 * The sources as one metadata value: keys in URI encoding, commas between them. What they say is the promoter's word: entries of a
 * journal end, and a promoter need not be in the team, so that nothing is looked up. Throws `bad_memory_key`, `bad_request`.
 */
function sourcesOf(keys: readonly string[]): string {
  const text = [...new Set(keys)].map(key => encodeURI(parseKey(key)).replaceAll(',', '%2C')).join(',')
  if (text.length > sourcesBytesMax)
    throw fail('bad_request', {
      message: `Field "source_keys": they take ${text.length} bytes as metadata, and ${sourcesBytesMax} fit. Name the ones that matter most, and list all of them in the content.`,
    })
  return text
}

/** Whether the index knows an object of that key. */
const findRecord = statement<[orgId: number, key: string], { key: string }>(
  'memory.find_record',
  `select key from memory_objects where org_id = $1::int and key = $2::text`,
)

const findLiveWorkspace = statement<[orgId: number, workspaceId: number], { id: number }>(
  'memory.find_live_workspace',
  `select id from workspaces where org_id = $1::int and id = $2::int and archived_at is null`,
)
