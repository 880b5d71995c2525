/** Pages for people who open an address of the gateway that is not meant for browsers. */
import type { Reply } from '../../../platform/endpoint.ts'
import { escapeHtml, page } from './page-frame.ts'

const documents =
  '<p>The <a href="/openapi.json">OpenAPI document</a> lists every endpoint. <a href="/llms.txt">llms.txt</a> says in plain text how to connect a client.</p>'

/** The page at `/` while the console is off. */
export function startPage(): Reply {
  return page(
    'This is a Brigade gateway',
    `<p>Programs reach models, agents and memory here with an API key. The operator has switched the web console off.</p>${documents}`,
  )
}

/** The page at /console while the console is off. */
export function consoleOffPage(): Reply {
  return page('The console is switched off', `<p>The operator has set <code>CONSOLE=off</code>.</p>${documents}`, 404)
}

/** The page at /console when the build lacks the console. */
export function consoleMissingPage(): Reply {
  return page(
    'The console is not built',
    `<p>The gateway works. Build the console in the checkout, and restart the gateway:</p><code class="line" tabindex="0">npm run build</code>${documents}`,
    503,
  )
}

/** The page that explains /mcp to a person. */
export function mcpPage(baseUrl: string, hasConsole: boolean): Reply {
  return page(
    'An address for MCP clients',
    `<p>A client of the Model Context Protocol connects to this address and gets the tools of your organisation: memory, models and usage.</p>` +
      `<code class="line" tabindex="0">${escapeHtml(baseUrl)}/mcp</code>` +
      `<p>It sends an API key or an agent token as the bearer credential. This command writes that into the settings of a client:</p>` +
      `<code class="line" tabindex="0">npx brigade connect claude-code --write</code>` +
      (hasConsole ? '<a class="button" href="/console/keys">Make a key</a>' : documents),
  )
}
