import { z } from 'zod'
import { endpointOf } from '../platform/endpoint.ts'
import { fail } from '../platform/errors.ts'
import { connectGuide } from './connect-elsewhere.ts'
import { ConnectError } from './connect-error.ts'
import { clientNames, defaultScope, paramShapes, platforms, toolsetNames } from './connect-plan.ts'

const row = endpointOf<object>()
const yesOrNo = z.enum(['true', 'false'])

export const connectEndpoints = {
  connectClient: row({
    at: 'GET /me/connect/{client}',
    auth: 'session',
    access: {},
    tag: 'agents',
    summary: 'The files and commands with which `brigade connect` makes a client use this gateway. The parameters are its flags. They contain no key.',
    input: {
      path: z.object({ client: z.enum(clientNames) }),
      query: z.object({
        agent: z.string().regex(paramShapes.agent).optional().describe('Name or id of the agent that makes the calls. Left out: a key makes them.'),
        model: z.string().regex(paramShapes.model).default('auto').describe('The model with which the client starts.'),
        models: z
          .enum(['yes', 'default', 'no'])
          .default('default')
          .describe("The client's own model calls. default: unless its settings already name another provider."),
        tools: yesOrNo.default('true').describe('The tools over MCP.'),
        scope: z.enum(['user', 'project']).optional().describe('For all projects of the user, or for one. Default: user; of vscode project.'),
        bridge: yesOrNo.default('false').describe('Tools through `brigade mcp` on the machine of the client.'),
        toolsets: z.string().max(300).regex(paramShapes.toolsets).optional().describe(`Only these tools: ${toolsetNames}.`),
        trust_tools: yesOrNo.default('false').describe('The client may call the tools without asking. For claude-code and codex.'),
        name: z.string().regex(paramShapes.name).default('brigade').describe('Of the entry.'),
        platform: z.enum(platforms).default('linux').describe('Of the machine of the client.'),
      }),
    },
    output: z.object({
      client: z.enum(clientNames),
      command: z.string().describe('Merges the settings into the files.'),
      files: z.array(
        z.object({
          path: z.string().describe('Begins with ~ or a variable for files of the user, and in the folder of the project for its files.'),
          what: z.string(),
          format: z.enum(['jsonc', 'toml']),
          text: z.string().describe('What the file holds when nothing else is in it.'),
          shared: z.boolean().describe('Other people read the file too.'),
        }),
      ),
      commands: z.array(z.string()).describe('Of the client itself, with the same effect as the file of the tools.'),
      notes: z.array(z.string()),
      needs_key_in_environment: z.boolean().describe('The client reads BRIGADE_KEY from its environment.'),
    }),
    errors: ['bad_request'],
    handle(_, { path: { client }, query }, { baseUrl }) {
      const { agent = null, model, models, scope = defaultScope(client), toolsets = null, name, platform } = query
      const [tools, bridge, trustTools] = [query.tools === 'true', query.bridge === 'true', query.trust_tools === 'true']
      try {
        return connectGuide(client, { baseUrl, name, scope, models, tools, model, agent, bridge, keyFile: null, toolsets, trustTools }, platform)
      } catch (error) {
        throw error instanceof ConnectError ? fail('bad_request', { message: error.message }) : error
      }
    },
  }),
}
