import { expect, test } from 'vitest'
import { routeResidency } from '../../../../src/gateway/providers/clouds/cloud-residency.ts'

const mumbai = { baseUrl: 'https://bedrock-runtime.ap-south-1.amazonaws.com', cloud: 'bedrock-invoke' } as const
const vertexAt = (location: string) =>
  ({ baseUrl: `https://${location}-aiplatform.googleapis.com/v1/projects/p/locations/${location}`, cloud: 'vertex' }) as const

test('CLOUD-06 an id that other regions may serve is not resident in India, whatever its row states', () => {
  const of = (id: string) => routeResidency('india', mumbai, id)
  for (const id of [
    'global.anthropic.claude-sonnet-4-5-20250929-v1:0',
    'apac.anthropic.claude-sonnet-4-20250514-v1:0',
    'us.anthropic.claude-opus-4-6-v1',
    'xyz.anthropic.claude-opus-4-6-v1',
    'arn:aws:bedrock:ap-south-1:123456789012:application-inference-profile/a1b2c3',
    'arn:aws:bedrock:ap-south-1:123456789012:inference-profile/global.anthropic.claude-opus-4-6-v1',
    'arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0',
    'arn:aws:bedrock:ap-south-1:123456789012:prompt-router/p',
  ])
    expect(of(id), id).toBe('global')
  for (const id of [
    'anthropic.claude-3-haiku-20240307-v1:0',
    'zai.glm-4.7',
    'arn:aws:bedrock:ap-south-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0',
    'arn:aws:bedrock:ap-south-2:123456789012:provisioned-model/abcdef',
  ])
    expect(of(id), id).toBe('india')
})

test('CLOUD-06 a region outside India is never India, on every surface of Bedrock and on Vertex', () => {
  const at = (baseUrl: string) => routeResidency('india', { baseUrl }, 'anthropic.claude-opus-4-8')
  expect(at('https://bedrock-mantle.us-east-1.api.aws/anthropic/v1')).toBe('global')
  expect(at('https://bedrock-mantle.ap-south-1.api.aws/anthropic/v1')).toBe('india')
  expect(routeResidency('india', { baseUrl: 'https://bedrock-runtime.ap-south-1.amazonaws.com/openai/v1' }, 'global.openai.gpt-oss-120b')).toBe('global')
  expect(['asia-south1', 'asia-south2', 'us-central1', 'global'].map(place => routeResidency('india', vertexAt(place), 'gemini-2.5-pro'))).toEqual([
    'india',
    'india',
    'global',
    'global',
  ])
  expect(routeResidency('unknown', mumbai, 'global.anthropic.claude-opus-4-6-v1')).toBe('unknown')
  expect(routeResidency('india', { baseUrl: 'https://api.sarvam.ai/v1' }, 'us.model')).toBe('india')
})
