/** `npm run format [-- paths]` formats, sorts imports and applies the safe fixes of the linter. */
import { ensureInstalled } from './ensure.mjs'
import { binOf, runTool } from './tools.mjs'

await ensureInstalled({ tools: true })
const paths = process.argv.slice(2)
const { code, stdout, stderr } = runTool(binOf('@biomejs/biome', 'biome'), ['check', '--write', ...(paths.length === 0 ? ['.'] : paths)])
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exitCode = code
