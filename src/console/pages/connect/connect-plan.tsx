import { useQuery } from '@tanstack/react-query'
import type { ReplyOf } from '../../api/call.ts'
import { apiQuery } from '../../api/queries.ts'
import { Code } from '../../ui/data/code.tsx'
import { Fold } from '../../ui/forms/choices.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Skeleton } from '../../ui/layout/skeleton.tsx'
import type { ConnectAgent } from './snippets.ts'
import { type PlannedClient, text } from './text.ts'

type Guide = ReplyOf<'connectClient'>

/** Returns the system of this machine, as the gateway names it. Most people connect a client of the machine on which they read. */
function platformHere(): 'linux' | 'darwin' | 'win32' {
  const { userAgent } = navigator
  if (userAgent.includes('Windows')) return 'win32'
  return userAgent.includes('Mac OS') ? 'darwin' : 'linux'
}

/**
 * Returns how the command names the agent. The name of a child belongs to its parent. A name with characters that a shell may act on was perhaps chosen for
 * the person who pastes the command. Both are named by their ids.
 */
const nameOrId = ({ id, name, parent_id }: ConnectAgent): string =>
  parent_id === null && /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_ .@-]*$/u.test(name) ? name : String(id)

/** How the gateway connects a coding client: one command, or the files by hand. */
export function ConnectPlan({ client, agent }: { readonly client: PlannedClient; readonly agent: ConnectAgent | null }) {
  const named = agent === null ? {} : { agent: nameOrId(agent) }
  const guide = useQuery(apiQuery('connectClient', { path: { client }, query: { ...named, platform: platformHere() } }))
  return (
    <Loaded query={guide} skeleton={<Skeleton lines={4} />}>
      {data => <Steps guide={data} />}
    </Loaded>
  )
}

function Steps({ guide: { command, files, commands, notes } }: { readonly guide: Guide }) {
  return (
    <div className="stack-3">
      <p className="quiet">{text.run}</p>
      <div className="connect-command">
        <Code text={command} />
      </div>
      <Fold title={text.filesTitle} hint={text.fileHint(files.length)}>
        {files.map(({ path, what, text: content }) => (
          <Code key={path} text={content} label={`${path}: ${what}`} />
        ))}
        {commands.map(line => (
          <Code key={line} text={line} label={text.commands} />
        ))}
      </Fold>
      {notes.length > 0 && (
        <ul className="connect-notes">
          {notes.map(note => (
            <li key={note}>
              <Words text={note} />
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

/** A sentence with code between backticks. */
function Words({ text: sentence }: { readonly text: string }) {
  return sentence.split('`').map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the sentence never changes.
    index % 2 === 1 ? <code key={index}>{part}</code> : part,
  )
}
