import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState } from 'react'
import { apiQuery } from '../../api/queries.ts'
import { usePageCommands } from '../../app/commands/command-list.ts'
import { useMe } from '../../app/me.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { ErrorPanel } from '../../ui/layout/error-panel.tsx'
import { Page } from '../../ui/layout/page.tsx'
import { Panel } from '../../ui/layout/panel.tsx'
import { AnswerView } from './answer-view.tsx'
import { Composer } from './composer.tsx'
import { GetCode } from './get-code.tsx'
import { chatModels, firstModel, ModelField } from './model-field.tsx'
import './playground.css'
import { bodyOf, faultsOf, type Turn } from './run/conversation.ts'
import { type Draft, draftName, readDraft, writeDraft } from './run/draft.ts'
import { useConversation } from './run/use-conversation.ts'
import { text } from './text.ts'

/** Within this distance of the end of the page, the page follows the answers. */
const followPx = 160

const route = getRouteApi('/playground')

/** Models, tried side by side. The page calls them with a token of its own, and nothing that is said is stored. */
export function PlaygroundPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const models = useQuery(apiQuery('listModels'))
  const { turns, isRunning, ask, stop, clear } = useConversation()
  const [draft, change] = useDraft()
  const [isCodeShown, setCodeShown] = useState(false)
  const [isChoosing, setChoosing] = useState(false)
  const input = useRef<HTMLTextAreaElement>(null)
  const model = search.model ?? (isChoosing || models.data === undefined ? undefined : firstModel(models.data.data))
  const beside = search.with
  const chosen = [model, beside].filter(id => id !== undefined)
  const setModel = (id: string | undefined): void => {
    setChoosing(id === undefined)
    const { model: _, ...rest } = search
    void navigate({ search: id === undefined ? rest : { ...rest, model: id }, replace: true, resetScroll: false })
  }
  const setBeside = (id: string | undefined): void => {
    const { with: _, ...rest } = search
    void navigate({ search: id === undefined ? rest : { ...rest, with: id }, replace: true, resetScroll: false })
  }
  const faults = faultsOf(draft)
  const blocked = model === undefined ? text.noModel : faults.temperature ? text.temperatureError : faults.maxTokens ? text.maxTokensError : null
  const send = (prompt: string): void => {
    if (prompt.trim() === '' || blocked !== null || isRunning) return
    ask(prompt, chosen, draft)
    change({ prompt: '' })
    input.current?.focus()
  }
  usePageCommands(
    useMemo(
      () => [
        { id: 'play-code', label: text.code, group: text.title, icon: 'terminal' as const, run: () => setCodeShown(true) },
        { id: 'play-clear', label: text.clear, group: text.title, icon: 'trash' as const, run: clear },
      ],
      [clear],
    ),
  )
  return (
    <Page
      title={text.title}
      intro={text.intro}
      actions={
        <>
          <Button icon="terminal" disabled={model === undefined} onClick={() => setCodeShown(true)}>
            {text.code}
          </Button>
          <Button icon="trash" disabled={turns.length === 0} onClick={clear}>
            {text.clear}
          </Button>
        </>
      }
    >
      <div className="play">
        {models.isError ? (
          <Panel>
            <ErrorPanel error={models.error} onRetry={() => void models.refetch()} />
          </Panel>
        ) : (
          <div className={beside === undefined ? 'play-models' : 'play-models is-pair'}>
            <ModelField label={text.model} model={model} onChange={setModel} />
            {beside !== undefined && <ModelField label={text.modelBeside} model={beside} onChange={setBeside} />}
            <Button
              icon={beside === undefined ? 'plus' : 'close'}
              disabled={models.data === undefined}
              onClick={() => setBeside(beside === undefined ? otherThan(model, models.data?.data ?? []) : undefined)}
            >
              {beside === undefined ? text.compare : text.compareEnd}
            </Button>
          </div>
        )}
        <Conversation turns={turns} onStart={send} />
        <Composer
          prompt={draft.prompt}
          onPrompt={prompt => change({ prompt })}
          settings={draft}
          onSettings={change}
          isRunning={isRunning}
          blocked={blocked}
          onSend={() => send(draft.prompt)}
          onStop={() => {
            stop()
            // The button goes with the stream, so the focus goes to the message.
            input.current?.focus()
          }}
          inputRef={input}
        />
      </div>
      {isCodeShown && model !== undefined && (
        <GetCode body={bodyOf(turns, 0, model, draft.prompt.trim() === '' ? 'Hello' : draft.prompt, draft)} onClose={() => setCodeShown(false)} />
      )}
    </Page>
  )
}

/** Returns a model to compare with: the first that works and is not the chosen one. */
const otherThan = (model: string | undefined, models: Parameters<typeof chatModels>[0]): string | undefined => {
  const others = chatModels(models).filter(({ id }) => id !== model)
  return (others.find(({ kind }) => kind === 'chat') ?? others[0])?.id
}

/** The draft of the person in this organisation, which is kept while the tab is open. */
function useDraft(): [Draft, (changes: Partial<Draft>) => void] {
  const me = useMe()
  const name = draftName(me.user.id, me.org.id)
  const [draft, setDraft] = useState(() => readDraft(name))
  const change = (changes: Partial<Draft>): void => {
    const { prompt, system, temperature, maxTokens } = { ...draft, ...changes }
    const next = { prompt, system, temperature, maxTokens }
    setDraft(next)
    writeDraft(name, next)
  }
  return [draft, change]
}

function Conversation({ turns, onStart }: { readonly turns: readonly Turn[]; readonly onStart: (prompt: string) => void }) {
  const end = useRef<HTMLDivElement>(null)
  const many = turns.length
  useEffect(() => {
    if (many > 0) end.current?.scrollIntoView({ block: 'end' })
  }, [many])
  // The page follows the answers while the person is at its end, and stays where the person scrolled to.
  useEffect(() => {
    const { scrollHeight } = document.documentElement
    if (turns.length > 0 && scrollHeight - innerHeight - scrollY < followPx) end.current?.scrollIntoView({ block: 'end' })
  }, [turns])
  if (many === 0) return <Starters onStart={onStart} />
  return (
    <div className="play-turns">
      {turns.map(({ id, prompt, answers }) => (
        <section key={id} className="play-turn" aria-label={prompt.slice(0, 80)}>
          <p className="play-prompt">
            <span className="visually-hidden">{text.you}: </span>
            {prompt}
          </p>
          <div className={answers.length > 1 ? 'play-answers is-pair' : 'play-answers'}>
            {answers.map((answer, column) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a column is its place.
              <AnswerView key={column} answer={answer} name={`${id}-${column}`} />
            ))}
          </div>
        </section>
      ))}
      <div ref={end} className="play-end" />
    </div>
  )
}

/** What the page shows before the first message. */
function Starters({ onStart }: { readonly onStart: (prompt: string) => void }) {
  return (
    <div className="play-empty">
      <div className="empty-icon">
        <Icon name="chat" size={20} />
      </div>
      <h2>{text.emptyTitle}</h2>
      <p className="quiet">{text.empty}</p>
      <ul className="play-starters">
        {text.starters.map(({ title, prompt }) => (
          <li key={title}>
            <button type="button" onClick={() => onStart(prompt)}>
              <span>{title}</span>
              <span className="quiet">{prompt}</span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}
