import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { classify, longContextTokens } from '../../../src/gateway/routing/prompts/classify.ts'
import { codePatterns, mathPatterns, reasoningPatterns } from '../../../src/gateway/routing/prompts/cues.ts'
import { romanisedLanguage, scriptLanguage } from '../../../src/gateway/routing/prompts/languages.ts'
import { corpus } from './classifier-corpus.ts'
import { table } from './classifier-table.ts'

/** Minimum share of prompts in each part of the corpus whose capability must be the one that a person chose. */
const floor = 0.9

describe('the classifier', () => {
  test.each(Object.entries(corpus))('the classifier names %s as people do, in at least nine of ten prompts', (capability, prompts) => {
    const wrong = prompts.flatMap(prompt => {
      const { capability: said, cue } = classify(prompt, 50)
      return said === capability ? [] : [`${said} (${cue}): ${prompt}`]
    })
    expect(1 - wrong.length / prompts.length, wrong.join('\n')).toBeGreaterThanOrEqual(floor)
  })

  test('the classifier names every row of the table as a person does, with its language', () => {
    expect(table.length).toBeGreaterThanOrEqual(200)
    const wrong = table.flatMap(([expected, prompt]) => {
      const { capability, language, cue } = classify(prompt, 50)
      const said = expected.includes(' ') ? `${capability} ${language}` : capability
      return said === expected ? [] : [`${said} (${cue}) for ${expected}: ${prompt}`]
    })
    expect(wrong).toEqual([])
  })

  test('the classifier does not take an English prompt for an Indian language', () => {
    const english = [...corpus.code, ...corpus.math, ...corpus.reasoning, ...corpus.general].filter(
      prompt => !prompt.includes('karo') && !prompt.includes('kare'),
    )
    expect(english.filter(prompt => romanisedLanguage(prompt.toLowerCase()) !== null)).toEqual([])
    expect(romanisedLanguage('the main hall of the pan menu is near the anna mall, and naan is on the table')).toBeNull()
  })

  test.each([
    ['hi', 'नमस्ते दुनिया', 'mujhe yeh samjhao please'],
    ['bn', 'আমি ভালো আছি', 'ami tomar jonno korbo'],
    ['ta', 'எப்படி இருக்கீங்க', 'enakku konjam help pannunga'],
    ['te', 'మీరు ఎలా ఉన్నారు', 'meeru ekkada unnaru cheppandi'],
    ['kn', 'ಹೇಗಿದ್ದೀರಾ', 'nanage swalpa sahaya beku, hegiddira'],
    ['ml', 'സുഖമാണോ', 'enikku ningal parayu venam'],
    ['gu', 'તમે કેમ છો', 'kem chho, tamne shu joiye'],
    ['pa', 'ਤੁਸੀਂ ਕਿਵੇਂ ਹੋ', 'tusi kiven ho, mainu dasso'],
    ['or', 'ଆପଣ କେମିତି ଅଛନ୍ତି', 'tume kemiti achha, kouthi'],
    ['ur', 'آپ کیسے ہیں', null],
    ['other', '今日は良い天気', null],
  ])('the classifier recognises %s by its script and in Latin letters', (language, script, latin) => {
    expect(scriptLanguage(script)).toBe(language)
    if (latin !== null) expect(romanisedLanguage(latin)).toBe(language)
    expect(classify(script, 10)).toMatchObject({ capability: 'multilingual', language })
  })

  test('a single sign, an emoji or a Greek letter does not count as a language', () => {
    for (const text of ['What is the value of α?', 'Great 👍🎉', 'The sign क is a letter of which alphabet? Tell me more of its history.', 'naïve café'])
      expect(scriptLanguage(text)).toBeNull()
  })

  test('the classifier prefers long-context to code, code to math, math to a language, and a language to reasoning', () => {
    const all = 'नमस्ते दुनिया ```js\nlet x = 1\n``` solve the equation x^2 - 1 = 0 step by step'
    expect(classify(all, longContextTokens).capability).toBe('long-context')
    expect(classify(all, longContextTokens - 1).capability).toBe('code')
    expect(classify('नमस्ते दुनिया solve the equation x^2 - 1 = 0 step by step', 10).capability).toBe('math')
    expect(classify('नमस्ते दुनिया, think step by step', 10).capability).toBe('multilingual')
    expect(classify('Think step by step about it', 10).capability).toBe('reasoning')
  })

  test('the classifier asks for a more capable model when the prompt needs one', () => {
    expect(classify('Hello', 10).complexity).toBe(1)
    expect(classify('Solve x^2 = 4', 10).complexity).toBe(2)
    expect(classify('Prove rigorously, step by step, that the algorithm is correct; write production-grade TypeScript code', 10).complexity).toBe(3)
    expect(classify('', 0)).toEqual({ capability: 'general', complexity: 1, cue: 'no_cue', language: null })
  })

  test('the classifier gives any text one of six capabilities, and the same text always the same one', () => {
    const capabilities = ['code', 'math', 'multilingual', 'long-context', 'reasoning', 'general']
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), fc.nat(100_000), (text, tokens) => {
        const first = classify(text, tokens)
        expect(capabilities).toContain(first.capability)
        expect(first.cue).toMatch(/^[a-z_]+$/)
        expect(classify(text, tokens)).toEqual(first)
      }),
    )
  })

  test('the classifier reads only the beginning and the end of a huge prompt, so no prompt takes long', () => {
    expect(classify(`${'word '.repeat(1_000_000)} and now fix app.ts:\n\`\`\`ts`, 10).capability).toBe('code')
    const seeds = [
      '1 ',
      'first then ',
      'compare ',
      'a{',
      'how many 1 ',
      'SELECT ',
      'function ',
      'why did ',
      ' ',
      '$',
      'if (',
      'await a',
      'Aa',
      'a_',
      'मला ',
      '(',
      '我',
    ]
    for (const seed of seeds) {
      // Ten megabytes in one flat string, as a parsed body has it.
      const text = Buffer.from(seed.repeat(Math.ceil(10_000_000 / seed.length))).toString()
      // A tenth of the text with the same beginning and end must take as long. The best of several runs counts, because the machine may be busy.
      const tenth = text.slice(0, text.length / 20) + text.slice(-text.length / 20)
      const best = (prompt: string): number => Math.min(...Array.from({ length: 5 }, () => timeOf(() => classify(prompt, 10))))
      expect(best(text), seed).toBeLessThan(4 * best(tenth) + 20)
    }
  })

  test('no pattern takes quadratic time in white space or in repeated words', () => {
    const patterns = [...codePatterns, ...mathPatterns, ...reasoningPatterns]
    // With a quadratic pattern, some of these texts would take minutes.
    for (const seed of [' ', '\n', '\r', '\t', '\n ', '\n at ', '.', '1', 'a', 'a_', 'A', 'first then ', 'for (', 'why ', '$', 'write '])
      for (const [name, , pattern] of patterns) expect([name, pattern.test(seed.repeat(300_000 / seed.length)) || true]).toEqual([name, true])
  })
})

function timeOf(work: () => void): number {
  const startedMs = performance.now()
  work()
  return performance.now() - startedMs
}
