/** The prompts of the conformance suite. */
import { type Block, type PromptMessage, type PromptSurface, SurfaceError } from '../../src/mcp/surface.ts'
import { pixelPng } from './fixture-media.ts'
import { promptQuestion } from './fixture-questions.ts'

const user = (content: Block): PromptMessage => ({ role: 'user', content })
const said = (text: string): PromptMessage => user({ type: 'text', text })

interface FixturePrompt {
  readonly says: string
  readonly wants?: readonly string[]
  messages(args: Readonly<Record<string, string>>): PromptMessage[]
}

const prompts: Record<string, FixturePrompt> = {
  test_simple_prompt: { says: 'A text.', messages: () => [said('This is a simple prompt for testing.')] },
  test_prompt_with_arguments: {
    says: 'A text with arguments.',
    wants: ['arg1', 'arg2'],
    messages: ({ arg1, arg2 }) => [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    says: 'A resource and a text.',
    wants: ['resourceUri'],
    messages: ({ resourceUri = '' }) => [
      user({ type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } }),
      said('Please process the embedded resource above.'),
    ],
  },
  test_input_required_result_prompt: { says: 'A text, after a question.', messages: () => [said('In the context that was asked for.')] },
  test_prompt_with_image: {
    says: 'An image and a text.',
    messages: () => [user({ type: 'image', data: pixelPng, mimeType: 'image/png' }), said('Please analyze the image above.')],
  },
}

export const fixturePrompts: PromptSurface = {
  list: () =>
    Object.entries(prompts).map(([name, { says, wants = [] }]) => ({
      name,
      description: says,
      arguments: wants.map(wanted => ({ name: wanted, required: true })),
    })),
  async get(name, args, _signal, asked) {
    if (name === 'test_input_required_result_prompt' && asked?.answers === undefined) return { questions: promptQuestion }
    const prompt = prompts[name]
    if (!prompt) throw new SurfaceError('badParams', `Unknown prompt: ${name}`)
    return { description: prompt.says, messages: prompt.messages(args) }
  },
}
