import { describe, expect, test } from 'vitest'
import { fail } from '../../../src/platform/errors.ts'
import { dialed, errorOf } from './outcome.ts'
import { asking, model, orgWithKeys, provider, worldOf } from './world.ts'

const one = provider('one')
const two = provider('two')
const both = model('m', [
  { of: one, inr: 10 },
  { of: two, inr: 20 },
])

describe('images and audio', () => {
  const picture = model('picture', [{ of: one }], { kind: 'image' })
  const editor = model('editor', [{ of: two }], { kind: 'image', edits: true })
  const voice = model('voice', [{ of: one }], { kind: 'speech' })
  const ears = model('ears', [{ of: one }], { kind: 'transcription' })
  const world = worldOf([both, picture, editor, voice, ears])
  const edits = {
    accepts: (asked: { edits: boolean }) => {
      if (!asked.edits) throw fail('unsupported_operation')
    },
  }

  test('images and audio are served by models of their kind', () => {
    expect(dialed(asking('picture', {}, { kind: 'image' }), world)).toEqual(['one/picture'])
    expect(dialed(asking('voice', {}, { kind: 'speech' }), world)).toEqual(['one/voice'])
    expect(dialed(asking('ears', {}, { kind: 'transcription' }), world)).toEqual(['one/ears'])
    expect(errorOf(asking('m', {}, { kind: 'image' }), world)).toBe('400 no_route')
    expect(errorOf(asking('picture', { indiaOnly: true }, { kind: 'image' }), world)).toBe('422 no_route_residency')
  })

  test('an unknown model and a virtual id get 400 model_not_found for images and audio', () => {
    for (const kind of ['image', 'speech', 'transcription'] as const)
      for (const id of ['nope', 'auto:nope', 'auto', 'best', 'auto:cheapest'])
        expect(errorOf(asking(id, {}, { kind }), world)).toBe('400 model_not_found_media')
    expect(errorOf(asking('auto', { fallbacks: [{ model: 'picture', provider: null }] }, { kind: 'image' }), world)).toBe('400 model_not_found_media')
    expect(errorOf(asking('one/nope', {}, { kind: 'image', org: orgWithKeys('one') }), world)).toBe('400 model_not_found_media')
  })

  test('a model without the needed ability is refused after the look-up and before residency and credentials. As a step of a chain, it is skipped', () => {
    expect(errorOf(asking('nope', {}, { kind: 'image', ...edits }), world)).toBe('400 model_not_found_media')
    expect(errorOf(asking('picture', { indiaOnly: true }, { kind: 'image', ...edits }), world)).toBe('400 unsupported_operation')
    expect(errorOf(asking('m', {}, { kind: 'image', ...edits }), world)).toBe('400 unsupported_operation')
    const fallbacks = ['picture', 'editor'].map(id => ({ model: id, provider: null }))
    expect(dialed(asking('editor', { fallbacks }, { kind: 'image', ...edits }), world)).toEqual(['two/editor'])
  })
})
