import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { apiErrorOf } from '../../../../api/api-error.ts'
import { api, type CallOptions } from '../../../../api/call.ts'
import { invalidate } from '../../../../api/queries.ts'
import { Button, LinkButton } from '../../../../ui/forms/button.tsx'
import { Combobox } from '../../../../ui/forms/combobox.tsx'
import { NumberField } from '../../../../ui/forms/field.tsx'
import { Empty } from '../../../../ui/layout/empty.tsx'
import { ErrorPanel, InlineError } from '../../../../ui/layout/error-panel.tsx'
import { Panel } from '../../../../ui/layout/panel.tsx'
import { toast } from '../../../../ui/overlays/toast.tsx'
import type { TabProps } from '../../agent-tabs.ts'
import { type AgentFamily, agentsChanged } from '../../use-agents.ts'
import { text } from './text.ts'
import { ToolPreview } from './tool-preview.tsx'
import { findPatterns, type Shown, useToolPreview } from './use-agent-tools.ts'

/** The rule about tools as a person typed it. */
interface Draft {
  readonly patterns: readonly string[]
  readonly perMinute: string
  readonly perDay: string
}

const typed = (value: number | null): string => (value === null ? '' : String(value))
const draftOf = ({ allowed_tools: patterns, tool_rpm: minute, tool_daily: day }: Pick<AgentFamily, 'allowed_tools' | 'tool_rpm' | 'tool_daily'>): Draft => ({
  patterns: patterns ?? [],
  perMinute: typed(minute),
  perDay: typed(day),
})
const isWhole = (value: string): boolean => value === '' || /^[1-9]\d{0,8}$/.test(value)
const limitIn = (value: string): number | null => (value === '' ? null : Number(value))
const isSame = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every(pattern => b.includes(pattern))

type Change = CallOptions<'updateAgentConsole'>['body']

/** Returns what differs from before, as the gateway takes it. */
function changeOf(draft: Draft, before: Draft): Change {
  return {
    ...(isSame(draft.patterns, before.patterns) ? {} : { allowed_tools: draft.patterns.length === 0 ? null : [...draft.patterns] }),
    ...(draft.perMinute === before.perMinute ? {} : { tool_rpm: limitIn(draft.perMinute) }),
    ...(draft.perDay === before.perDay ? {} : { tool_daily: limitIn(draft.perDay) }),
  }
}

/** The tools that an agent may call, the pattern that allows each, and a form with a preview of what a change does. */
export function ToolsTab({ agent, isMine }: TabProps) {
  const [before, setBefore] = useState(() => draftOf(agent))
  const [draft, setDraft] = useState(before)
  const [shown, setShown] = useState<Shown>('matched')
  const [q, setQ] = useState('')
  const saved = useToolPreview(agent.id, before.patterns, 'matched', '')
  const preview = useToolPreview(agent.id, draft.patterns, shown, q)
  const change = changeOf(draft, before)
  const isChanged = Object.keys(change).length > 0
  const isReady = isChanged && isWhole(draft.perMinute) && isWhole(draft.perDay)
  const save = useMutation({
    mutationFn: (body: Change) => api('updateAgentConsole', { path: { id: agent.id }, body }),
    onSuccess: async changed => {
      const next = draftOf(changed)
      setBefore(next)
      setDraft(next)
      await Promise.all([agentsChanged(), invalidate('previewAgentTools')])
      toast(text.saved)
    },
  })
  if (saved.data === undefined && saved.isError)
    return (
      <Panel>
        <ErrorPanel error={saved.error} onRetry={() => void saved.refetch()} />
      </Panel>
    )
  if (saved.data?.total === 0 && before.patterns.length === 0)
    return (
      <Panel>
        <Empty icon="server" title={text.noneTitle} action={<LinkButton to="/tools">{text.toServers}</LinkButton>}>
          {text.none}
        </Empty>
      </Panel>
    )
  const set = (patterns: readonly string[]): void => setDraft({ ...draft, patterns })
  const number = (name: 'perMinute' | 'perDay', label: string) => (
    <NumberField
      label={label}
      placeholder={text.noLimit}
      value={draft[name]}
      error={isWhole(draft[name]) ? null : text.wholeNumber}
      onChange={event => setDraft({ ...draft, [name]: event.target.value.trim() })}
    />
  )
  return (
    <>
      <Panel title={text.title} note={saved.data && text.now(saved.data.allowed, saved.data.total)}>
        <form
          className="stack-5"
          noValidate
          onSubmit={event => {
            event.preventDefault()
            if (isReady && !save.isPending) save.mutate(change)
          }}
        >
          <p className="quiet">{text.about}</p>
          {isMine && (
            <>
              <Combobox
                label={text.field}
                placeholder={text.placeholder}
                name={`tools of ${agent.id}`}
                isMultiple
                value={draft.patterns.map(pattern => ({ value: pattern, label: pattern }))}
                onChange={next => set(next.map(({ value }) => value))}
                search={(words, signal) => findPatterns(agent.id, words, signal)}
              />
              <div className="rule-grid">
                {number('perMinute', text.perMinute)}
                {number('perDay', text.perDay)}
              </div>
            </>
          )}
          <Matches matches={preview.data?.matches ?? []} />
          {isMine && (
            <>
              {save.error && <InlineError error={apiErrorOf(save.error)} />}
              <div className="tools-save">
                <Button look="primary" type="submit" isBusy={save.isPending} disabled={!isReady}>
                  {text.save}
                </Button>
                {isChanged && preview.data && saved.data && (
                  <span className="quiet" role="status">
                    {text.after(preview.data.allowed, saved.data.allowed)}
                  </span>
                )}
              </div>
            </>
          )}
        </form>
      </Panel>
      <ToolPreview
        preview={preview}
        shown={shown}
        q={q}
        onShown={setShown}
        onSearch={setQ}
        patterns={draft.patterns}
        onPatterns={isMine ? set : null}
        isPreview={isChanged}
      />
    </>
  )
}

/** Each pattern of the rule with the number of approved tools that it matches. */
function Matches({ matches }: { readonly matches: readonly { readonly pattern: string; readonly tools: number }[] }) {
  if (matches.length === 0) return null
  return (
    <ul className="pattern-list" aria-label={text.matchesLabel}>
      {matches.map(({ pattern, tools }) => (
        <li key={pattern}>
          <code>{pattern}</code> <span className="quiet">{text.matches(tools)}</span>
        </li>
      ))}
    </ul>
  )
}
