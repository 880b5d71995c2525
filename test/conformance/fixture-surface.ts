/**
 * What the conformance suite asks a server to hold: tools, resources and prompts of fixed names. They are a surface like that of the
 * gateway, so everything between them and the wire is the code that serves it.
 */
import {
  type Asked,
  type Block,
  type ChangeParams,
  type ChangeSink,
  type ChangingList,
  type Listening,
  type Questions,
  type ResourceSurface,
  type Surface,
  SurfaceError,
  type ToolAnswer,
  type ToolEntry,
  type ToolRun,
} from '../../src/mcp/surface.ts'
import { pixelPng, silentWav } from './fixture-media.ts'
import { fixturePrompts } from './fixture-prompts.ts'
import { questionTools } from './fixture-questions.ts'

const text = (said: string): Block => ({ type: 'text', text: said })
const answer = (...content: Block[]): ToolAnswer => ({ content })

interface FixtureTool {
  readonly says: string
  readonly inputSchema?: ToolEntry['inputSchema']
  run(run: ToolRun): ToolAnswer | Questions
}

/** The lists that can change. */
const announced: readonly ChangingList[] = ['tools', 'prompts']

/** Who listens to changes of lists; every POST has a surface of its own, so this is shared by those of one mount. */
class Listeners {
  readonly #sinks = new Map<ChangeSink, readonly ChangingList[]>()

  async listen({ lists }: ChangeParams, sink: ChangeSink): Promise<Listening> {
    const granted = { lists: lists.filter(list => announced.includes(list)), uris: [] }
    this.#sinks.set(sink, granted.lists)
    return { granted, stop: () => this.#sinks.delete(sink) }
  }

  notify(kind: ChangingList): void {
    for (const [sink, lists] of this.#sinks) if (lists.includes(kind)) sink.notify({ kind })
  }
}

/** The schema that the suite wants to see again, keyword by keyword. */
const schemaOf2020: ToolEntry['inputSchema'] = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

const embedded: Block = {
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' },
}
const mixed: Block = { type: 'resource', resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' } }
const image: Block = { type: 'image', data: pixelPng, mimeType: 'image/png' }

function fixtureTools(listeners: Listeners): Record<string, FixtureTool> {
  return {
    test_simple_text: { says: 'Answers a text.', run: () => answer(text('This is a simple text response for testing.')) },
    test_image_content: { says: 'Answers an image.', run: () => answer(image) },
    test_audio_content: { says: 'Answers a sound.', run: () => answer({ type: 'audio', data: silentWav, mimeType: 'audio/wav' }) },
    test_embedded_resource: { says: 'Answers a resource.', run: () => answer(embedded) },
    test_multiple_content_types: { says: 'Answers all of them.', run: () => answer(text('Multiple content types test:'), image, mixed) },
    test_error_handling: {
      says: 'Fails.',
      run: () => ({ content: [text('This tool intentionally returns an error for testing')], isError: true }),
    },
    test_tool_with_progress: {
      says: 'Reports how far it is.',
      run: ({ report }) => {
        for (const progress of [0, 50, 100]) report?.({ progress, message: `${progress} of 100` })
        return answer(text('Done.'))
      },
    },
    test_tool_with_logging: { says: 'Logs what it does.', run: logging },
    test_logging_tool: { says: 'Logs what it does.', run: logging },
    json_schema_2020_12_tool: { says: 'Has a schema with every keyword.', inputSchema: schemaOf2020, run: () => answer(text('It was valid.')) },
    ...Object.fromEntries(Object.entries(questionTools).map(([name, ask]) => [name, { says: 'Asks back.', run: (run: ToolRun) => asking(run, ask) }])),
    test_trigger_tool_change: { says: 'Tells that the list of tools changed.', run: () => changed(listeners, 'tools') },
    test_trigger_prompt_change: { says: 'Tells that the list of prompts changed.', run: () => changed(listeners, 'prompts') },
  }
}

function asking({ asked }: ToolRun, ask: (asked: Asked) => ToolAnswer | Questions): ToolAnswer | Questions {
  return asked === null ? { content: [text('This caller cannot be asked.')], isError: true } : ask(asked)
}

function logging({ log }: ToolRun): ToolAnswer {
  for (const said of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) log('info', said)
  return answer(text('Logged.'))
}

function changed(listeners: Listeners, list: ChangingList): ToolAnswer {
  listeners.notify(list)
  return answer(text('Told.'))
}

const resources = [
  { uri: 'test://static-text', name: 'text', description: 'A text.', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'image', description: 'An image.', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'watched', description: 'A text that may change.', mimeType: 'text/plain' },
]

const resourceSurface: ResourceSurface = {
  list: async () => ({ resources }),
  templates: () => [{ uriTemplate: 'test://template/{id}/data', name: 'template', description: 'A resource for any id.', mimeType: 'application/json' }],
  async read(uri) {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
    if (id !== undefined) return [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }]
    if (uri === 'test://static-binary') return [{ uri, mimeType: 'image/png', blob: pixelPng }]
    if (uri === 'test://static-text') return [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }]
    if (uri === 'test://watched-resource') return [{ uri, mimeType: 'text/plain', text: 'Watched.' }]
    throw new SurfaceError('notThere', 'Resource not found', { uri })
  },
}

/** Makes the surfaces of one mount: the same things for every caller. */
export function fixtureSurfaces(): () => Surface {
  const listeners = new Listeners()
  const tools = fixtureTools(listeners)
  const entries = Object.entries(tools).map(([name, { says, inputSchema }]) => ({
    name,
    description: says,
    inputSchema: inputSchema ?? { type: 'object' as const },
  }))
  return () => ({
    tools: {
      running: 0,
      list: () => entries,
      has: name => name in tools,
      unknown: name => `Unknown tool: ${name}`,
      run: async (name, _args, run) => tools[name]?.run(run) ?? answer(),
    },
    resources: resourceSurface,
    prompts: fixturePrompts,
    complete: async ({ argument }) => ({ values: ['paris', 'park', 'party'].filter(value => value.startsWith(argument.value)), hasMore: false }),
    changes: { lists: announced, listen: (params, sink) => listeners.listen(params, sink) },
    logging: true,
  })
}
