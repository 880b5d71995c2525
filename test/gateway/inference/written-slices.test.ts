import { expect, test } from 'vitest'
import { writtenInSlices } from '../../../src/gateway/inference/attempt/written-slices.ts'
import { withoutHalves } from '../../../src/gateway/providers/dialects/json-values.ts'

const values: Readonly<Record<string, unknown>> = {
  'a long text with pairs of surrogates': { text: `a${'😀'.repeat(1_500_000)}`, next: 1 },
  'a long text of escapes': [`${'\n"\\'.repeat(1_000_000)}\\ud800`],
  'a long text of halves': { text: '\ud800'.repeat(1_100_000) },
  'many values': Array.from({ length: 30_000 }, (_, index) => ({ index, text: `\ud83d${index}\u0001`, none: undefined, [`k${index}`]: [null, true, {}, []] })),
  'names of all sorts': JSON.parse('{"__proto__":1,"2":"b","1":"a","":[[[]]],"\\"\\\\":{"a":null}}'),
  'a value alone': 'text',
}

test.each(Object.keys(values))('a body that is written in slices is that of JSON.stringify: %s', async name => {
  for (const mend of [withoutHalves, (json: string) => json]) {
    let turns = 0
    const inTurn = async <T>(work: () => T): Promise<T> => {
      turns++
      return work()
    }
    const written = await writtenInSlices({ value: values[name], mend }, inTurn)
    expect(written.equals(Buffer.from(mend(JSON.stringify(values[name]))))).toBe(true)
    expect(turns).toBeGreaterThanOrEqual(written.length > 2_000_000 ? 3 : 2)
  }
})
