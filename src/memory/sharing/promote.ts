/** Promotion is the only way to write records. An owner or admin vouches for them. */
import { type Db, statement } from '../../platform/db/db.ts'
import { fail, toGatewayError } from '../../platform/errors.ts'
import type { Conditions, ConfiguredStore, MemoryCall } from '../access/memory-call.ts'
import { type MemoryKey, parseKey, parseNewKey } from '../memory-key.ts'
import type { MemoryObjects } from '../objects/objects.ts'

export interface PromotionDeps {
  readonly db: Db
  readonly objects: Pick<MemoryObjects, 'write'>
  /** Returns the configured store. Throws `memory_not_configured`. */
  configured(orgId: number): Promise<ConfiguredStore>
}

/** The content of a new record. The caller has checked that the promoter is an owner or admin. */
export interface PromotionParams {
  /** The workspace of the record. Undefined means a record of the organisation. Null means that the request contained an impossible id. */
  readonly workspaceId: number | null | undefined
  /** One segment below records/. Several segments are allowed only to replace a record that already exists. */
  readonly name: string
  readonly content: string | undefined
  /** Keys that the content was made from, as the promoter states them. */
  readonly sourceKeys: readonly string[]
}

/** Maximum number of bytes of all sources together, encoded. Stores accept 2 KB of metadata for an object, and the rest of the provenance also needs room. */
const sourcesBytesMax = 1_024

export class Promotions {
  readonly #deps: PromotionDeps

  constructor(deps: PromotionDeps) {
    this.#deps = deps
  }

  /**
   * Writes the record, and replaces an existing record of that name. Throws `memory_not_configured`, `bad_name`, `bad_request`, `bad_memory_key` for
   * a source, `not_found` for a workspace that does not exist or is archived, and the errors of a write.
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

/** Returns the key of a record. Throws `bad_name` that says what is wrong with the name. */
function recordKey({ workspaceId, name }: PromotionParams): MemoryKey {
  if (name === '') throw fail('bad_name', { message: 'Field "name": the record needs a name, for example security.md.' })
  try {
    return parseNewKey(`${workspaceId === undefined ? 'org' : `workspaces/${workspaceId ?? 0}`}/records/${name}`)
  } catch (error) {
    throw fail('bad_name', { message: `Field "name": ${toGatewayError(error).message}`, cause: error })
  }
}

/**
 * Returns the sources as one metadata value: keys in URI encoding, separated by commas. The gateway does not check that the sources exist, because journal
 * entries expire and the promoter need not be in the team. Throws `bad_memory_key`, `bad_request`.
 */
function sourcesOf(keys: readonly string[]): string {
  const text = [...new Set(keys)].map(key => encodeURI(parseKey(key)).replaceAll(',', '%2C')).join(',')
  if (text.length > sourcesBytesMax)
    throw fail('bad_request', {
      message: `Field "source_keys": they take ${text.length} bytes as metadata, and ${sourcesBytesMax} fit. Name the ones that matter most, and list all of them in the content.`,
    })
  return text
}

/** Returns whether the index knows an object of that key. */
const findRecord = statement<[orgId: number, key: string], { key: string }>(
  'memory.find_record',
  `select key from memory_objects where org_id = $1::int and key = $2::text`,
)

const findLiveWorkspace = statement<[orgId: number, workspaceId: number], { id: number }>(
  'memory.find_live_workspace',
  `select id from workspaces where org_id = $1::int and id = $2::int and archived_at is null`,
)
