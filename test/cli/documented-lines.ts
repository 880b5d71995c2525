import { readFileSync } from 'node:fs'

/** Returns the lines of the guide's shell blocks that are one brigade command and need no values filled in. */
export function documentedLines(): string[][] {
  const page = readFileSync(new URL('../../docs/guides/cli.md', import.meta.url), 'utf8')
  const lines = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = '']) => block.split('\n'))
  return lines
    .map(line => line.replace(/\s+# .*$/, ''))
    .filter(line => line.startsWith('npx brigade ') && !/[|<]/.test(line))
    .map(line =>
      [...line.slice('npx brigade '.length).matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, bare]) => double ?? single ?? bare ?? ''),
    )
}
