import { entryEdits, type SettingEdit } from '../connect-edits.ts'
import { wrongUsage } from '../connect-error.ts'
import { bridgeCommand, type ConnectParams, type ConnectPlace, type ConnectPlan, mcpUrl, pathsOf } from '../connect-plan.ts'

/** Returns the plan for opencode. It changes opencode.json or opencode.jsonc, of the user or of the project. */
export function connectOpencode(params: ConnectParams, place: ConnectPlace): ConnectPlan {
  const hasModels = params.agent === null && params.models !== 'no'
  if (params.agent !== null && params.models === 'yes')
    throw wrongUsage('opencode cannot renew a token for its models: connect them with a key, without --agent, or only the --tools as the agent.')
  const isBridge = params.bridge || params.agent !== null
  const folder =
    params.scope === 'project' ? place.project : pathsOf(place).join(place.env['XDG_CONFIG_HOME'] || pathsOf(place).join(place.home, '.config'), 'opencode')
  const withComments = pathsOf(place).join(folder, 'opencode.jsonc')
  const path = place.exists(withComments) ? withComments : pathsOf(place).join(folder, 'opencode.json')
  const schema: SettingEdit = { kind: 'set', path: ['$schema'], value: 'https://opencode.ai/config.json', unless: 'present' }
  return {
    client: 'opencode',
    files: [
      {
        path,
        format: 'jsonc',
        what: 'models and tools of opencode',
        edits: [schema, ...(hasModels ? modelEdits(params) : []), ...(params.tools ? toolEdits(params, place) : [])],
        isShared: params.scope === 'project',
      },
    ],
    commands: [],
    notes: params.agent !== null ? ['opencode cannot renew a token for its models, so only its tools run as the agent.'] : [],
    needsKeyInEnvironment: params.keyFile === null && (!isBridge || hasModels),
  }
}

function modelEdits(params: ConnectParams): SettingEdit[] {
  const path = ['provider', params.name]
  return [
    { kind: 'set', path: ['model'], value: `${params.name}/${params.model}`, ...(params.models === 'yes' ? {} : { unless: 'present' as const }) },
    ...entryEdits(path, { npm: '@ai-sdk/openai-compatible', name: 'Brigade' }, []),
    ...entryEdits(
      [...path, 'options'],
      { baseURL: `${params.baseUrl}/v1`, apiKey: params.keyFile === null ? '{env:BRIGADE_KEY}' : `{file:${params.keyFile}}` },
      [],
    ),
    // A person may have changed the fields of the model since the last run.
    { kind: 'set', path: [...path, 'models', params.model], value: { name: params.model, tool_call: true }, unless: 'present' },
  ]
}

function toolEdits(params: ConnectParams, place: ConnectPlace): SettingEdit[] {
  const path = ['mcp', params.name]
  const waysOfTransport = ['type', 'url', 'headers', 'oauth', 'command']
  if (!params.bridge && params.agent === null)
    return entryEdits(path, { type: 'remote', url: mcpUrl(params), headers: { Authorization: 'Bearer {env:BRIGADE_KEY}' }, oauth: false }, waysOfTransport)
  const { command, args } = bridgeCommand(params, place)
  return entryEdits(path, { type: 'local', command: [command, ...args] }, waysOfTransport)
}
