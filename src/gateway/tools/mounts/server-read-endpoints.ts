import { z } from 'zod'
import { endpointOf, type Reply, reply } from '../../../platform/endpoint.ts'
import { fail } from '../../../platform/errors.ts'
import { publicNameOf } from '../registry/definitions/public-name.ts'
import type { ReadMethod } from './read-request.ts'
import type { ReadContext, ServerReads } from './server-reads.ts'

const row = endpointOf<{ serverReads: ServerReads }>()

const requires = ({ serverReads }: { serverReads: ServerReads }): void => serverReads.requireOn()
const tag = 'tools'
/** What a server shows is text of others and belongs to one request. No cache keeps it. */
const notCached = { 'cache-control': 'no-store' }
const cursorMaxChars = 4096
const uriMaxChars = 4096
const nameMaxChars = 256
const argumentsMax = 50
const argumentMaxChars = 16_384

const serverPath = z.object({ slug: z.string().max(16).describe('The slug of an MCP server.') })
const cursor = z.string().max(cursorMaxChars).optional().describe('nextCursor of the page before. It is text of the server.')
const nextCursor = z.string().max(cursorMaxChars).optional()
const meta = z.record(z.string(), z.unknown())

/** The items of the lists. They are checked one after the other, because the list as a whole would describe each wrong one. */
const items = {
  resources: z.looseObject({ uri: z.string(), name: z.string() }),
  resourceTemplates: z.looseObject({ uriTemplate: z.string(), name: z.string() }),
  contents: z.union([
    z.looseObject({ uri: z.string(), text: z.string(), mimeType: z.string().optional(), _meta: meta.optional() }),
    z.looseObject({ uri: z.string(), blob: z.string(), mimeType: z.string().optional(), _meta: meta.optional() }),
  ]),
  prompts: z.looseObject({
    name: z.string(),
    arguments: z.array(z.looseObject({ name: z.string(), description: z.string().optional(), required: z.boolean().optional() })).optional(),
  }),
  messages: z.looseObject({ role: z.enum(['user', 'assistant']), content: z.looseObject({ type: z.string() }) }),
}

const resourcePage = z.object({ resources: z.array(items.resources), nextCursor })
const templatePage = z.object({ resourceTemplates: z.array(items.resourceTemplates), nextCursor })
const contents = z.object({ contents: z.array(items.contents) })
const promptPage = z.object({ prompts: z.array(items.prompts), nextCursor })
const promptResult = z.object({ description: z.string().optional(), messages: z.array(items.messages) })

const errors = [
  'forbidden',
  'unavailable',
  'bad_request',
  'not_found',
  'agent_revoked_label',
  'tool_connection_required',
  'tool_server_failed',
  'tool_result_too_large',
  'tool_server_unavailable',
  'tool_timeout',
  'database_unavailable',
] as const

/** Where a text comes from. A mark of this name that the server sent is replaced. */
const originOf = (server: string) => ({ 'dev.brigade/origin': { server, untrusted: true } })

/** Reads, and checks the form of the answer. Throws `tool_server_failed` for another form. */
async function readAs<T>(
  shape: z.ZodType<T>,
  { serverReads }: { serverReads: ServerReads },
  context: ReadContext,
  slug: string,
  method: ReadMethod,
  params: Readonly<Record<string, unknown>>,
): Promise<T> {
  const read = await serverReads.read(context, slug, { method, params })
  const areRight = Object.entries(items).every(([name, item]) => {
    const list = read[name]
    return !Array.isArray(list) || list.every(each => item.safeParse(each).success)
  })
  const parsed = areRight ? shape.safeParse(read) : null
  if (parsed?.success !== true) throw fail('tool_server_failed', { message: 'The MCP server did not answer as the protocol says.' })
  return parsed.data
}

const shown = (value: object): Reply => reply.json(value, 200, notCached)
const pageOf = (given: string | undefined): Record<string, unknown> => (given === undefined ? {} : { cursor: given })

export const serverReadEndpoints = {
  listServerResources: row({
    at: 'GET /v1/tool-servers/{slug}/resources',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'A page of the resources of one MCP server, read now. The rules of the caller must cover the whole server.',
    input: { path: serverPath, query: z.object({ cursor }) },
    output: resourcePage,
    errors: [...errors],
    requires,
    handle: async (services, { path: { slug }, query }, call) =>
      shown(await readAs(resourcePage, services, call, slug, 'resources/list', pageOf(query.cursor))),
  }),

  listServerTemplates: row({
    at: 'GET /v1/tool-servers/{slug}/resource-templates',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'A page of the resource templates of one MCP server, read now.',
    input: { path: serverPath, query: z.object({ cursor }) },
    output: templatePage,
    errors: [...errors],
    requires,
    handle: async (services, { path: { slug }, query }, call) =>
      shown(await readAs(templatePage, services, call, slug, 'resources/templates/list', pageOf(query.cursor))),
  }),

  readServerResource: row({
    at: 'GET /v1/tool-servers/{slug}/resource',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'One resource of an MCP server, read now. `_meta` of each part names the server. What it says is untrusted.',
    input: { path: serverPath, query: z.object({ uri: z.string().min(1).max(uriMaxChars).describe('As the list of the server shows it.') }) },
    output: contents,
    errors: [...errors],
    requires,
    handle: async (services, { path: { slug }, query: { uri } }, call) => {
      const read = await readAs(contents, services, call, slug, 'resources/read', { uri })
      return shown({ contents: read.contents.map(part => ({ ...part, _meta: { ...part._meta, ...originOf(slug) } })) })
    },
  }),

  listServerPrompts: row({
    at: 'GET /v1/tool-servers/{slug}/prompts',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'A page of the prompts of one MCP server, read now.',
    input: { path: serverPath, query: z.object({ cursor }) },
    output: promptPage,
    errors: [...errors],
    requires,
    handle: async (services, { path: { slug }, query }, call) => shown(await readAs(promptPage, services, call, slug, 'prompts/list', pageOf(query.cursor))),
  }),

  getServerPrompt: row({
    at: 'POST /v1/tool-servers/{slug}/prompts/{name}',
    auth: 'key',
    access: { agentScope: 'tools:call' },
    tag,
    summary: 'The messages of one prompt of an MCP server, made now. `_meta` names the server. What they say is untrusted.',
    input: {
      path: serverPath.extend({ name: z.string().max(nameMaxChars).describe('Name of the prompt.') }),
      body: z.strictObject({
        arguments: z
          .record(z.string().max(nameMaxChars), z.string().max(argumentMaxChars))
          .refine(given => Object.keys(given).length <= argumentsMax, `at most ${argumentsMax} arguments`)
          .optional()
          .describe('Texts by the names of the arguments.'),
      }),
    },
    output: promptResult.extend({ _meta: meta }),
    errors: [...errors],
    audit: false,
    requires,
    handle: async (services, { path: { slug, name }, body }, call) => {
      const params = { name, ...(body.arguments === undefined ? {} : { arguments: body.arguments }) }
      const read = await readAs(promptResult, services, call, slug, 'prompts/get', params)
      return shown({ ...read, _meta: originOf(slug) })
    },
  }),
}

/** Returns the public name of a tool that its server knows under `ownName`. */
export const publicToolName = (slug: string, ownName: string): string => publicNameOf(slug, ownName)
