/**
 * Reads the body of a POST as JSON-RPC, and finds faults before an SDK reads it. Without these checks, the SDKs would report some faults as failures
 * of the gateway. They would also run and charge some messages without an answer, and repeat some texts without a bound. The functions are pure.
 */
import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { lookAhead, parseJson } from '../../gateway/wire/json/json-body.ts'
import { type JsonBounds, managementBounds } from '../../gateway/wire/json/json-scan.ts'
import { GatewayError } from '../../platform/errors.ts'
import { issuesText } from '../tools/toolbox/tool.ts'
import { excessOf } from './rpc-bounds.ts'

/** The answer to a body that is refused. */
export interface BodyRefusal {
  /** 400 for an invalid message, in the form that the SDKs use. 200 for the JSON-RPC error of one request. */
  readonly status: 200 | 400
  readonly code: number
  readonly message: string
  readonly id: string | number | null
}

/** Maximum number of messages of a batch. The SDK refuses longer batches. */
export const messagesMax = 100
/** The members of an object have a lower bound in rpc-bounds.ts, whose error names it. */
const rpcJsonBounds: JsonBounds = { ...managementBounds, membersMax: managementBounds.valuesMax }
/** Maximum length of a progress token. Every progress notification repeats its token, even when the client does not read. */
const progressTokenCharsMax = 1_000

/** The first version without `initialize`. The SDK of that era reports the error itself. Versions are dates, so they can be compared as texts. */
const discoverEraVersion = '2026-07-28'

/** Returns the JSON value of a body, or why it is refused. `version` is the value of the header MCP-Protocol-Version. */
export async function parseRpcBody(
  bytes: Buffer,
  version: string | string[] | undefined,
): Promise<{ readonly body: unknown } | { readonly refusal: BodyRefusal }> {
  let body: unknown
  try {
    const looked = lookAhead(bytes, rpcJsonBounds)
    if (looked !== undefined) await looked
    const excess = excessOf(bytes)
    if (excess !== null) return { refusal: invalidRequest(`Invalid Request: ${excess}.`) }
    body = parseJson(bytes, rpcJsonBounds)
  } catch (error) {
    if (error instanceof GatewayError) return { refusal: invalidRequest(`Invalid Request: ${error.message}`) }
    return { refusal: { status: 400, code: -32700, message: 'Parse error: the body is not valid JSON.', id: null } }
  }
  const refusal = wrongBody(body, typeof version === 'string' && version >= discoverEraVersion)
  return refusal === null ? { body } : { refusal }
}

/** Writes a refusal as the response. */
export function writeRefusal(response: ServerResponse, { status, code, message, id }: BodyRefusal): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id }))
}

function wrongBody(body: unknown, isDiscoverEra: boolean): BodyRefusal | null {
  const messages = (Array.isArray(body) ? body.slice(0, messagesMax) : [body]).map(each => message.safeParse(each).data ?? {})
  const ids = messages.flatMap(({ id, method }) => (id === undefined || method === undefined ? [] : [id]))
  // Of several requests with the same id, the SDK answers only one. The others would run and cost money without an answer.
  if (new Set(ids).size < ids.length) return invalidRequest('Invalid Request: two requests of the batch have the same id.')
  if (messages.some(({ params }) => (params?._meta?.progressToken?.length ?? 0) > progressTokenCharsMax))
    return invalidRequest(`Invalid Request: a progressToken has at most ${progressTokenCharsMax} characters.`)
  return wrongParams(body, isDiscoverEra)
}

const invalidRequest = (text: string): BodyRefusal => ({ status: 400, code: -32600, message: text, id: null })

const requestId = z.union([z.string(), z.number()])
const message = z.object({
  id: requestId.optional().catch(undefined),
  /** An answer has no method, and its id is not the id of a request. */
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

/** The shapes of the params for some methods. For a wrong type in them, the SDKs would answer -32603, the code of an internal error. */
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

/** Returns the refusal of a request with wrong params. The SDK checks the members of a batch. */
function wrongParams(body: unknown, isDiscoverEra: boolean): BodyRefusal | null {
  const request = z.looseObject({ id: requestId, method: z.string() }).safeParse(body).data
  if (isDiscoverEra && request?.method === 'initialize') return null
  const wrong = request && paramsOf.get(request.method)?.safeParse(request['params']).error
  if (!wrong) return null
  return { status: 200, code: -32602, message: `Invalid params of ${request.method}: ${issuesText(wrong)}.`, id: request.id }
}
