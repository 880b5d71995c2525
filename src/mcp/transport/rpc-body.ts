/**
 * The body of a POST as JSON-RPC, and what is wrong with it before any SDK looks: what they would answer as a failure of ours, pay for
 * and lose, or repeat without bound. Pure.
 */
import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { lookAhead, parseJson } from '../../gateway/wire/json/json-body.ts'
import { managementBounds } from '../../gateway/wire/json/json-scan.ts'
import { GatewayError } from '../../platform/errors.ts'
import { issuesText } from '../tools/toolbox/tool.ts'
import { excessOf } from './rpc-bounds.ts'

/** A body that goes no further, and its answer. */
export interface BodyRefusal {
  /** 400 for what is no message, as the SDKs answer it; 200 for the JSON-RPC error of one request. */
  readonly status: 200 | 400
  readonly code: number
  readonly message: string
  readonly id: string | number | null
}

/** Most messages of a batch; the SDK refuses longer ones. */
export const messagesMax = 100
/** Every progress notification repeats its token, also to a reader who does not read. */
const progressTokenCharsMax = 1_000

/** From this version on there is no `initialize`, and the SDK of that era says so. Versions are dates. */
const discoverEraVersion = '2026-07-28'

/** The JSON value of a body, or why it is not taken. `version` is what the header MCP-Protocol-Version says. */
export async function parseRpcBody(
  bytes: Buffer,
  version: string | string[] | undefined,
): Promise<{ readonly body: unknown } | { readonly refusal: BodyRefusal }> {
  let body: unknown
  try {
    const looked = lookAhead(bytes, managementBounds)
    if (looked !== undefined) await looked
    const excess = excessOf(bytes)
    if (excess !== null) return { refusal: invalidRequest(`Invalid Request: ${excess}.`) }
    body = parseJson(bytes, managementBounds)
  } catch (error) {
    if (error instanceof GatewayError) return { refusal: invalidRequest(`Invalid Request: ${error.message}`) }
    return { refusal: { status: 400, code: -32700, message: 'Parse error: the body is not valid JSON.', id: null } }
  }
  const refusal = wrongBody(body, typeof version === 'string' && version >= discoverEraVersion)
  return refusal === null ? { body } : { refusal }
}

/** Answers with a refusal. */
export function writeRefusal(response: ServerResponse, { status, code, message, id }: BodyRefusal): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id }))
}

function wrongBody(body: unknown, isDiscoverEra: boolean): BodyRefusal | null {
  const messages = (Array.isArray(body) ? body.slice(0, messagesMax) : [body]).map(each => message.safeParse(each).data ?? {})
  const ids = messages.flatMap(({ id, method }) => (id === undefined || method === undefined ? [] : [id]))
  // The SDK answers one of them alone; the others would run, and cost, for nobody.
  if (new Set(ids).size < ids.length) return invalidRequest('Invalid Request: two requests of the batch have the same id.')
  if (messages.some(({ params }) => (params?._meta?.progressToken?.length ?? 0) > progressTokenCharsMax))
    return invalidRequest(`Invalid Request: a progressToken has at most ${progressTokenCharsMax} characters.`)
  return wrongParams(body, isDiscoverEra)
}

const invalidRequest = (text: string): BodyRefusal => ({ status: 400, code: -32600, message: text, id: null })

const requestId = z.union([z.string(), z.number()])
const message = z.object({
  id: requestId.optional().catch(undefined),
  /** Answers have none, and ids of their own. */
  method: z.string().optional().catch(undefined),
  params: z
    .object({
      _meta: z
        .object({ progressToken: z.string().optional().catch(undefined) })
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
})

const page = z.object({ cursor: z.string().optional() }).optional()
const completionRef = z.union([z.object({ type: z.literal('ref/prompt'), name: z.string() }), z.object({ type: z.literal('ref/resource'), uri: z.string() })])

/** Of these methods the SDKs say -32603 for params of a wrong type, as if the fault were ours. */
const paramsOf: ReadonlyMap<unknown, z.ZodType> = new Map<unknown, z.ZodType>([
  ['initialize', z.object({ protocolVersion: z.string(), capabilities: z.looseObject({}), clientInfo: z.object({ name: z.string(), version: z.string() }) })],
  ['tools/list', page],
  ['prompts/list', page],
  ['resources/list', page],
  ['resources/templates/list', page],
  ['resources/read', z.object({ uri: z.string() })],
  ['prompts/get', z.object({ name: z.string(), arguments: z.record(z.string(), z.string()).optional() })],
  ['completion/complete', z.object({ ref: completionRef, argument: z.object({ name: z.string(), value: z.string() }) })],
])

/** The members of a batch are left to the SDK. */
function wrongParams(body: unknown, isDiscoverEra: boolean): BodyRefusal | null {
  const request = z.looseObject({ id: requestId, method: z.string() }).safeParse(body).data
  if (isDiscoverEra && request?.method === 'initialize') return null
  const wrong = request && paramsOf.get(request.method)?.safeParse(request['params']).error
  if (!wrong) return null
  return { status: 200, code: -32602, message: `Invalid params of ${request.method}: ${issuesText(wrong)}.`, id: request.id }
}
