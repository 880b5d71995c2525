import { join } from 'node:path'
import { wrongUsage } from './command-error.ts'
import { entryEdits, type SettingEdit } from './connect-edits.ts'
import { bridgeCommand, type ConnectPlace, type ConnectPlan, type ConnectWish, mcpUrl } from './connect-plan.ts'

/** opencode: opencode.json or opencode.jsonc, of the user or the project. */
export function connectOpencode(wish: ConnectWish, place: ConnectPlace): ConnectPlan {
  const hasModels = wish.agent === null && wish.models !== 'no'
  if (wish.agent !== null && wish.models === 'yes')
    throw wrongUsage('opencode cannot renew a token for its models: connect them with a key, without --agent, or only the --tools as the agent.')
  const isBridge = wish.bridge || wish.agent !== null
  const folder = wish.scope === 'project' ? place.project : join(place.env['XDG_CONFIG_HOME'] || join(place.home, '.config'), 'opencode')
  const withComments = join(folder, 'opencode.jsonc')
  const path = place.exists(withComments) ? withComments : join(folder, 'opencode.json')
  const schema: SettingEdit = { kind: 'set', path: ['$schema'], value: 'https://opencode.ai/config.json', unless: 'present' }
  return {
    client: 'opencode',
    files: [
      {
        path,
        format: 'jsonc',
        what: 'models and tools of opencode',
        edits: [schema, ...(hasModels ? modelEdits(wish) : []), ...(wish.tools ? toolEdits(wish, place) : [])],
        isShared: wish.scope === 'project',
      },
    ],
    commands: [],
    notes: wish.agent !== null ? ['opencode cannot renew a token for its models, so only its tools run as the agent.'] : [],
    needsKeyInEnvironment: wish.keyFile === null && (!isBridge || hasModels),
  }
}

function modelEdits(wish: ConnectWish): SettingEdit[] {
  const path = ['provider', wish.name]
  return [
    { kind: 'set', path: ['model'], value: `${wish.name}/${wish.model}`, ...(wish.models === 'yes' ? {} : { unless: 'present' as const }) },
    ...entryEdits(path, { npm: '@ai-sdk/openai-compatible', name: 'Brigade' }, []),
    ...entryEdits([...path, 'options'], { baseURL: `${wish.baseUrl}/v1`, apiKey: wish.keyFile === null ? '{env:BRIGADE_KEY}' : `{file:${wish.keyFile}}` }, []),
    // Its fields may be the person's own by now.
    { kind: 'set', path: [...path, 'models', wish.model], value: { name: wish.model, tool_call: true }, unless: 'present' },
  ]
}

function toolEdits(wish: ConnectWish, place: ConnectPlace): SettingEdit[] {
  const path = ['mcp', wish.name]
  const waysOfTransport = ['type', 'url', 'headers', 'oauth', 'command']
  if (!wish.bridge && wish.agent === null)
    return entryEdits(path, { type: 'remote', url: mcpUrl(wish), headers: { Authorization: 'Bearer {env:BRIGADE_KEY}' }, oauth: false }, waysOfTransport)
  const { command, args } = bridgeCommand(wish, place)
  return entryEdits(path, { type: 'local', command: [command, ...args] }, waysOfTransport)
}
