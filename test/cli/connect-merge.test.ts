import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { parse } from 'jsonc-parser'
import { parse as parseToml, stringify } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { edited, entryEdits, type SettingEdit, type Settings } from '../../src/connect/connect-edits.ts'
import { editJsonc } from '../../src/connect/formats/connect-jsonc.ts'
import { editToml } from '../../src/connect/formats/connect-toml.ts'
import { propertyRuns } from '../harness/property-runs.ts'

const commentsIn = (text: string): string[] => text.match(/note \d+ #/g) ?? []
const name = fc.oneof(fc.stringMatching(/^[a-z]{1,6}$/), fc.constantFrom('brigade', 'mcp_servers', 'a.b', 'with space', 'ü', '"', '#'))
const leaf = fc.oneof(fc.string({ maxLength: 12 }), fc.integer(), fc.boolean(), fc.constantFrom('a # b', 'x = [', '"""', "'", '//no', '/* no */', 'C:\\dir'))

describe('JSON with comments', () => {
  const edits: SettingEdit[] = [
    { kind: 'set', path: ['model'], value: 'auto', unless: 'present' },
    ...entryEdits(['mcpServers', 'brigade'], { type: 'http', url: 'http://x/mcp', headers: { Authorization: 'Bearer k' } }, ['command', 'args']),
    { kind: 'include', path: ['inputs'], item: { id: 'brigade-key', type: 'promptString' } },
  ]

  /** Settings as a person might write them, with comments anywhere, trailing commas, and any indentation. */
  const typed = fc
    .tuple(
      fc.dictionary(name, fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), fc.dictionary(name, leaf, { maxKeys: 3 })), { maxKeys: 5 }),
      fc.option(
        fc.dictionary(fc.constantFrom('brigade', 'other', 'third'), fc.dictionary(fc.constantFrom('command', 'url', 'timeout', 'args'), leaf, { maxKeys: 3 }), {
          maxKeys: 3,
        }),
      ),
      fc.option(fc.array(fc.record({ id: fc.constantFrom('brigade-key', 'k'), type: fc.constant('promptString') }), { maxLength: 2 })),
      fc.infiniteStream(fc.nat(5)),
      fc.constantFrom('  ', '\t', '    '),
      fc.constantFrom('\n', '\r\n'),
    )
    .map(([more, servers, inputs, dice, indent, eol]) => {
      const value = { ...more, ...(servers === null ? {} : { mcpServers: servers }), ...(inputs === null ? {} : { inputs }) }
      let count = 0
      const note = (pad: string): string => {
        const roll = dice.next().value
        if (roll === 0) return `${eol}${pad}// note ${count++} #${eol}${pad}`
        return roll === 1 ? ` /* note ${count++} # */ ` : ''
      }
      const write = (inner: unknown, depth: number): string => {
        const pad = indent.repeat(depth + 1)
        const trailing = (): string => (dice.next().value === 2 ? ',' : '')
        if (Array.isArray(inner))
          return `[${inner.map(item => `${note(pad)}${write(item, depth + 1)}`).join(', ')}${inner.length > 0 ? trailing() : ''}${note(pad)}]`
        if (typeof inner !== 'object' || inner === null) return JSON.stringify(inner)
        const fields = Object.entries(inner).map(([key, field]) => `${eol}${pad}${note(pad)}${JSON.stringify(key)}${note(pad)}: ${write(field, depth + 1)}`)
        return `{${fields.join(',')}${fields.length > 0 ? trailing() : ''}${note(pad)}${eol}${indent.repeat(depth)}}`
      }
      return { value: value as Settings, text: `${note('')}${write(value, 0)}${eol}` }
    })

  test('an edit keeps every other value and comment, makes the requested change, and changes nothing the second time', () => {
    fc.assert(
      fc.property(typed, ({ value, text }) => {
        let expected: Settings
        try {
          expected = edited(value, edits)
        } catch {
          expect(() => editJsonc(text, edits)).toThrow()
          return
        }
        const after = editJsonc(text, edits)
        expect(parse(after, [], { allowTrailingComma: true })).toEqual(expected)
        const lost = commentsIn(text).filter(comment => !after.includes(comment))
        // Comments between the parts of a removed entry may be removed too.
        const dropped = isDeepStrictEqual(
          value,
          edited(
            value,
            edits.filter(edit => edit.kind === 'drop'),
          ),
        )
        if (dropped) expect(lost).toEqual([])
        expect(editJsonc(after, edits)).toBe(after)
        if (text.includes('\r\n')) expect(after.replaceAll('\r\n', '')).not.toContain('\n')
      }),
      { numRuns: propertyRuns(300) },
    )
  })

  test('an empty file, a file without a final line break and a file with a byte order mark can be edited', () => {
    const after = editJsonc('', edits)
    expect(JSON.parse(after)).toMatchObject({ model: 'auto', mcpServers: { brigade: { type: 'http' } }, inputs: [{ id: 'brigade-key' }] })
    expect(editJsonc('\uFEFF{"a":1}', edits)).toMatch(/^\uFEFF\{/)
    expect(JSON.parse(editJsonc('{"a":1}', edits))).toMatchObject({ a: 1, model: 'auto' })
  })

  test.each([
    ['{"a":1,"mcpServers":{"o":{"args":["1"]}},"b":[1,{"c":3}]}', ['{"a":1,"mcpServers":{"o":{"args":["1"]},', '},"b":[1,{"c":3}],']],
    ['{ "theme": "dark", "big": 12345678901234567890, "f": 1.0 }\n', ['{ "theme": "dark", "big": 12345678901234567890, "f": 1.0,']],
    ['{\n  "a": 1 // of a\n  // at the end\n}\n// after\n', ['  "a": 1, // of a', '  // at the end', '// after']],
    ['{\n  "mcpServers": {\n    "brigade": {\n      // why\n      "command": "x" // this\n    }\n  }\n}\n', ['      // why', ' // this']],
    ['{\n  "mcpServers": { "brigade": { "command": "x", } },\n}\n', ['}']],
    ['// mine\n', ['// mine']],
    ['/* mine */', ['/* mine */']],
  ])('%j: the text that was typed stays unchanged, and comments stay in place', (text, lines) => {
    const after = editJsonc(text, edits)
    expect(after.split('\n')).toEqual(expect.arrayContaining(lines.map(line => expect.stringContaining(line))))
    expect(parse(after, [], { allowTrailingComma: true })).toEqual(edited(parse(text, [], { allowTrailingComma: true }) ?? {}, edits))
    expect(editJsonc(after, edits)).toBe(after)
  })

  test('a file of megabytes without a line break is merged quickly', () => {
    const history = Array.from({ length: 4 }, (_one, at) => ({ display: `${'x'.repeat(120)}${at}` }))
    const text = JSON.stringify({ projects: Object.fromEntries(Array.from({ length: 4000 }, (_one, at) => [`/srv/work/${at}`, { history }])) })
    expect(text.length).toBeGreaterThan(2_000_000)
    const after = editJsonc(text, edits)
    expect(after.startsWith(text.slice(0, -1))).toBe(true)
  }, 10_000)

  test.each([
    ['{"a": ', 'it is not JSON'],
    ['{"a": 1}}', 'it is not JSON'],
    ['[1]', 'no object'],
    ['{"mcpServers": []}', 'mcpServers'],
    ['{"mcpServers": {"brigade": "x"}}', 'mcpServers.brigade'],
    ['{"inputs": {}}', 'inputs is no list'],
  ])('%s is refused', (text, why) => {
    expect(() => editJsonc(text, edits)).toThrow(why)
  })
})

describe('TOML', () => {
  const edits: SettingEdit[] = [
    { kind: 'set', path: ['model'], value: 'auto', unless: 'present' },
    { kind: 'set', path: ['model_provider'], value: 'brigade' },
    ...entryEdits(['model_providers', 'brigade'], { name: 'Brigade', base_url: 'http://x/v1' }, ['env_key']),
    ...entryEdits(['model_providers', 'brigade', 'auth'], { command: 'C:\\node "x"', args: ['a', 'b'] }, []),
    ...entryEdits(['mcp_servers', 'brigade'], { url: 'http://x/mcp' }, ['command', 'args']),
  ]

  const typed = fc
    .tuple(
      fc.dictionary(name, fc.oneof(leaf, fc.array(fc.integer(), { maxLength: 3 }), fc.dictionary(name, leaf, { maxKeys: 3 })), { maxKeys: 4 }),
      fc.option(
        fc.record(
          {
            model: fc.string(),
            model_provider: fc.constant('openai'),
            mcp_servers: fc.dictionary(
              fc.constantFrom('brigade', 'other', 'a.b'),
              fc.dictionary(fc.constantFrom('command', 'url', 'startup_timeout_sec'), leaf, { maxKeys: 3 }),
              { maxKeys: 3 },
            ),
          },
          { requiredKeys: [] },
        ),
      ),
      fc.infiniteStream(fc.nat(4)),
      fc.constantFrom('\n', '\r\n'),
    )
    .map(([more, known, dice, eol]) => {
      let count = 0
      const text = stringify({ ...more, ...known })
        .split('\n')
        .flatMap(line => {
          const roll = dice.next().value
          if (roll === 0) return [`# note ${count++} #`, line]
          if (roll === 1 && line !== '' && !line.includes('"""')) return [`${line} # note ${count++} #`]
          return roll === 2 ? ['', line] : [line]
        })
        .join(eol)
      return { value: { ...more, ...known } as Settings, text }
    })

  test('an edit keeps every other value and comment, makes the requested change, and changes nothing the second time', () => {
    let refused = 0
    const runs = propertyRuns(300)
    fc.assert(
      fc.property(typed, ({ value, text }) => {
        const plain = (inner: unknown): unknown => JSON.parse(JSON.stringify(inner))
        if (!isDeepStrictEqual(plain(parseToml(text)), plain(value))) return
        let after: string
        try {
          after = editToml(text, edits)
        } catch {
          refused++
          return
        }
        expect(plain(parseToml(after))).toEqual(plain(edited(value, edits)))
        // A comment on the line of a removed assignment is removed too.
        const gone = text
          .split(/\r?\n/)
          .filter(line => /^\s*(command|args|env_key) =/.test(line))
          .flatMap(commentsIn)
        expect(commentsIn(text).filter(comment => !after.includes(comment) && !gone.includes(comment))).toEqual([])
        expect(editToml(after, edits)).toBe(after)
        if (eolOf(text) === '\r\n') expect(after.replaceAll('\r\n', '')).not.toContain('\n')
      }),
      { numRuns: runs },
    )
    expect(refused).toBeLessThan(runs / 5)
  })
  const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n')

  test('in a file as Codex users have it, only the requested settings change', () => {
    const text = `# my settings
model = "gpt-5" # the good one
approval_policy = "on-request"

# servers
[mcp_servers.github]
command = "npx"
args = [
  "-y", # yes
  "server#github",
]

[mcp_servers.brigade]
# an old one
url = "http://old/mcp"
startup_timeout_sec = 20

[projects."/srv/work"]
trust_level = "trusted"
when = 2026-01-01T00:00:00Z
big = 9223372036854775807
long = """
[mcp_servers.brigade]
url = "no"
"""
`
    expect(editToml(text, edits)).toBe(
      `${text
        .replace('approval_policy = "on-request"\n', 'approval_policy = "on-request"\nmodel_provider = "brigade"\n')
        .replace('"http://old/mcp"', '"http://x/mcp"')}
[model_providers.brigade]
name = "Brigade"
base_url = "http://x/v1"

[model_providers.brigade.auth]
command = "C:\\\\node \\"x\\""
args = ["a", "b"]
`,
    )
  })

  test('next to dotted keys, a new setting is a dotted key too', () => {
    const after = editToml('mcp_servers.brigade.url = "http://old" # mine\n[x]\ny = 1\n', edits.slice(-1))
    expect(after).toBe('mcp_servers.brigade.url = "http://x/mcp" # mine\n[x]\ny = 1\n')
    const beside = editToml('[mcp_servers]\nbrigade.timeout = 1\nother.url = "x"\n', edits.slice(-1))
    expect(beside).toBe('[mcp_servers]\nbrigade.timeout = 1\nbrigade.url = "http://x/mcp"\nother.url = "x"\n')
  })

  test('a table is removed with the tables below it, and comments stay', () => {
    const text = '[a.b]\nx = 1\n# kept\n[a.b.auth]\ncommand = "c"\n# kept too\n[z]\nq = 1\n'
    expect(editToml(text, [{ kind: 'drop', path: ['a', 'b', 'auth'] }])).toBe('[a.b]\nx = 1\n# kept\n# kept too\n[z]\nq = 1\n')
  })

  test.each([
    ['model = ', 'it is not TOML'],
    ['mcp_servers = { brigade = { url = "x", command = "y" } }\n', 'mcp_servers.brigade is written in a way that cannot be changed safely'],
    ['mcp_servers = 1\n', 'mcp_servers'],
    ['[[mcp_servers]]\nx = 1\n', 'mcp_servers'],
  ])('%s is refused', (text, why) => {
    expect(() => editToml(text, edits)).toThrow(why)
  })
})
