/**
 * The definition of an MCP tool, without any SDK. A tool refers to an endpoint row, so that HTTP and MCP share one validation, one access rule and
 * one metering. The tool adds what an agent needs: a name, schemas written for models, and a readable result.
 */
import type { z } from 'zod'
import type { RowInput, RowInvoker } from '../../../gateway/http/rows/row-invoker.ts'
import type { Clock } from '../../../platform/clock.ts'
import { type AnyRow, type Call, Reply } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { type BearerPrincipal, mayCall } from '../../../platform/security/principal.ts'

/** The caller, request id, label and deadline of a tool call. `paid` are the units that the POST has already taken from the caller's rate. */
export type ToolCall = Omit<Call<BearerPrincipal>, 'baseUrl'> & { readonly paid?: { use(): boolean } }

/** One step of a running tool. `progress` never decreases. `message` says in a few words what happens. It contains no content of the call. */
export interface ToolProgress {
  readonly progress: number
  /** The value of `progress` at the end, when it is known. */
  readonly total?: number
  readonly message: string
}

export interface ToolContext {
  readonly call: ToolCall
  readonly invoker: RowInvoker
  readonly clock: Clock
  /** Reports progress. Null unless the client asked for progress. */
  readonly report: ((progress: ToolProgress) => void) | null
}

/** The answer of a tool: text for the model, and the same content as data for the program around it. */
export interface ToolResult {
  readonly text: string
  readonly structured: Readonly<Record<string, unknown>>
  /** Blocks after the text: pictures, and links to resources. */
  readonly more?: readonly ContentBlock[]
  /** `_meta` of the result. It is for programs, and no model sees it. */
  readonly meta?: Readonly<Record<string, unknown>>
}

/** A content block of the protocol that is not the text of the answer. */
export type ContentBlock =
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }

/**
 * Groups of tools that a client chooses with `?toolsets=`. `images` is not in the default choice, because few agents make pictures and every listed
 * tool costs each conversation tokens.
 */
export const toolsets = ['core', 'memory', 'usage', 'images'] as const
/** The set of the three tools that find, describe and call the tools of MCP servers. Its name follows those of single servers. */
export const searchToolset = 'tools:search'
export type Toolset = (typeof toolsets)[number] | typeof searchToolset

/** Hints of the protocol. Every tool sets all four, because a client assumes the worst case for a missing hint. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export interface Tool {
  readonly name: string
  readonly toolset: Toolset
  readonly title: string
  readonly description: string
  readonly annotations: ToolAnnotations
  readonly row: AnyRow
  readonly inputSchema: z.ZodObject
  readonly outputSchema: z.ZodObject
  /** Returns whether this caller sees the tool in lists. */
  mayUse(principal: BearerPrincipal): boolean
  /** Checks the arguments against `inputSchema` and runs the tool. Throws GatewayError. */
  run(args: unknown, context: ToolContext): Promise<ToolResult>
}

interface ToolHead<I extends z.ZodObject, R extends AnyRow = AnyRow> {
  readonly name: string
  readonly toolset: Toolset
  readonly title: string
  readonly description: string
  readonly annotations: ToolAnnotations
  readonly row: R
  readonly inputSchema: I
  readonly outputSchema: z.ZodObject
}

/** Returns a tool that makes one call of its row. It turns arguments into the input of the row, and the value of the row into the result. */
export function rowTool<I extends z.ZodObject, R extends AnyRow>(
  tool: ToolHead<I, R> & {
    toInput(args: z.output<I>): RowInput<R>
    toResult(value: unknown, args: z.output<I>): ToolResult | Promise<ToolResult>
  },
): Tool {
  return customTool({
    ...tool,
    run: async (args, context) => tool.toResult(await context.invoker.call(tool.row, tool.toInput(args), context.call), args),
  })
}

/** Returns a tool that calls its row itself. A tool that reads a stream needs this. */
export function customTool<I extends z.ZodObject>(tool: ToolHead<I> & { run(args: z.output<I>, context: ToolContext): Promise<ToolResult> }): Tool {
  const argsOf = strictParser(tool.name, tool.inputSchema)
  return {
    name: tool.name,
    toolset: tool.toolset,
    title: tool.title,
    description: tool.description,
    annotations: tool.annotations,
    row: tool.row,
    inputSchema: tool.inputSchema,
    outputSchema: tool.outputSchema,
    mayUse: principal => tool.row.auth !== 'session' && tool.row.auth !== 'signature' && mayCall(principal, tool.row.access).ok,
    async run(args, context) {
      // The access check comes before the check of the arguments. A caller that may not use the tool gets no errors about its arguments.
      const verdict = mayCall(context.call.principal, tool.row.access)
      if (!verdict.ok) {
        // The row refuses the call too and records it like any refused call: it counts against the rate and writes an audit line.
        await context.invoker.call(tool.row, {}, context.call)
        throw fail('forbidden', { message: verdict.why })
      }
      return tool.run(argsOf(args), context)
    },
  }
}

/**
 * Returns a parser of arguments. Invalid arguments fail the call and are not a protocol error, so that the model reads what to correct. An unknown
 * field is invalid, because it is most often misspelt.
 */
function strictParser<I extends z.ZodObject>(name: string, schema: I): (args: unknown) => z.output<I> {
  const strict = schema.strict()
  return args => {
    const parsed = strict.safeParse(args ?? {})
    if (parsed.success) return parsed.data as z.output<I>
    throw fail('bad_request', { message: `Arguments of ${name}: ${issuesText(parsed.error)}.` })
  }
}

/** Maximum number of faults in one error, and of unknown names in one fault. */
const faultsMax = 5
const unknownNamesMax = 10
/** Maximum length of a name or path of a caller that an error repeats. */
const namedMaxChars = 100

/** Returns a text that names the wrong fields and their faults, for the first few faults. */
export const issuesText = ({ issues }: z.core.$ZodError): string => issues.slice(0, faultsMax).map(issueText).join('; ')

function issueText(issue: z.core.$ZodIssue): string {
  const field = shortened(issue.path.join('.'))
  const said = issue.code === 'unrecognized_keys' ? unknownText(issue.keys) : issue.message
  return field === '' ? said : `${field}: ${said}`
}

function unknownText(keys: readonly string[]): string {
  const names = keys.slice(0, unknownNamesMax).map(name => JSON.stringify(shortened(name)))
  const more = keys.length > names.length ? ` and ${keys.length - names.length} more` : ''
  return `Unrecognized ${keys.length === 1 ? 'key' : 'keys'}: ${names.join(', ')}${more}`
}

const shortened = (text: string): string => (text.length > namedMaxChars ? `${text.slice(0, namedMaxChars)}…` : text)

/** Returns a handler's result as a JSON value: the body of a `Reply`, or any other value unchanged. Throws an Error for an empty or streamed reply. */
export function jsonOf(value: unknown): unknown {
  if (!(value instanceof Reply)) return value
  switch (value.body.kind) {
    case 'json':
      return value.body.value
    case 'bytes':
      return JSON.parse(Buffer.from(value.body.bytes).toString('utf8'))
    case 'empty':
    case 'stream':
      throw new Error(`a ${value.body.kind} reply has no JSON value`)
  }
}

/** Returns a value as data for `structuredContent`. Bigint amounts become numbers, dates become texts, and absent fields are left out. */
export function plainJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null, (_key, v: unknown) => (typeof v === 'bigint' ? Number(v) : v)))
}
