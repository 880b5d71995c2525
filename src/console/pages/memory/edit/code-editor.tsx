import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { defineLanguageFacet, HighlightStyle, Language, languageDataProp, syntaxHighlighting } from '@codemirror/language'
import { EditorState } from '@codemirror/state'
import { EditorView, highlightActiveLine, highlightSpecialChars, keymap } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { useEffect, useRef } from 'react'
import { markdown } from '../../../ui/markdown/parse.ts'

/** What the page asks of the editor. */
export interface EditorHandle {
  read(): string
  focus(): void
}

interface CodeEditorProps {
  /** The text at first. A later value changes nothing, so that no text is lost while the page reads again. */
  readonly text: string
  readonly label: string
  readonly isMarkdown: boolean
  /** Receives whether the text differs from the first one. */
  readonly onChange: (isChanged: boolean) => void
  /** Ctrl S. */
  readonly onSave: () => void
  readonly onReady: (handle: EditorHandle) => void
}

/**
 * An editor for long texts. It is in a shadow root, because the policy of the page forbids the style element that it would make in the document. Tab moves on,
 * as in a field, so that no keyboard is trapped.
 */
export function CodeEditor({ text, label, isMarkdown, onChange, onSave, onReady }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const now = useRef({ onChange, onSave, onReady })
  now.current = { onChange, onSave, onReady }
  const first = useRef({ text, label, isMarkdown })
  useEffect(() => {
    const place = host.current
    if (place === null) return
    const root = place.shadowRoot ?? place.attachShadow({ mode: 'open' })
    const start = stateOf(first.current, now)
    const view = new EditorView({ state: start, parent: root, root })
    now.current.onReady({ read: () => view.state.sliceDoc(), focus: () => view.focus() })
    view.focus()
    return () => view.destroy()
  }, [])
  return <div ref={host} className="memory-editor" />
}

type Now = { readonly current: Pick<CodeEditorProps, 'onChange' | 'onSave'> }

function stateOf({ text, label, isMarkdown }: Pick<CodeEditorProps, 'text' | 'label' | 'isMarkdown'>, now: Now): EditorState {
  const save = (): boolean => {
    now.current.onSave()
    return true
  }
  const start: EditorState = EditorState.create({
    doc: text,
    extensions: [
      // The ends of lines stay as they are, so that an edit of one line changes one line.
      EditorState.lineSeparator.of(lineEndOf(text)),
      history(),
      highlightSpecialChars(),
      highlightActiveLine(),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0', spellcheck: 'true', autocapitalize: 'sentences' }),
      keymap.of([{ key: 'Mod-s', run: save, preventDefault: true }, ...defaultKeymap, ...historyKeymap]),
      EditorView.domEventHandlers({ beforeinput: typeOver }),
      EditorView.updateListener.of(update => {
        if (update.docChanged) now.current.onChange(!update.state.doc.eq(start.doc))
      }),
      ...(isMarkdown ? [markdownLanguage, syntaxHighlighting(colours)] : []),
      theme,
    ],
  })
  return start
}

/**
 * Types over a selection. The browser would keep the look of the selected text in a style attribute, which the policy of the page blocks and reports.
 */
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { data, inputType, isComposing } = event
  if (inputType !== 'insertText' || data === null || isComposing || view.state.selection.main.empty) return false
  event.preventDefault()
  view.dispatch(view.state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true })
  return true
}

/** Returns the end of lines that a text has, if it has only one kind. */
const lineEndOf = (text: string): string => (/\r\n/.test(text) && !/(^|[^\r])\n/.test(text) ? '\r\n' : '\n')

const data = defineLanguageFacet({})
const markdownLanguage = new Language(data, markdown.configure({ props: [languageDataProp.add(type => (type.isTop ? data : undefined))] }), [], 'markdown')

const colours = HighlightStyle.define([
  { tag: tags.heading, fontWeight: '600' },
  { tag: tags.strong, fontWeight: '600' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: tags.strikethrough, textDecoration: 'line-through' },
  { tag: [tags.link, tags.url], color: 'var(--accent-text)' },
  { tag: [tags.processingInstruction, tags.contentSeparator, tags.labelName], color: 'var(--faint)' },
  { tag: tags.quote, color: 'var(--quiet)' },
  { tag: tags.monospace, color: 'var(--good)' },
])

const theme = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'transparent', fontSize: '0.875rem' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.65', overflow: 'auto' },
  '.cm-content': { padding: '1rem 0', caretColor: 'var(--accent-text)' },
  '.cm-line': { padding: '0 1.25rem' },
  '.cm-activeLine': { backgroundColor: 'var(--sunken)' },
  '.cm-specialChar': { color: 'var(--bad)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, ::selection': { backgroundColor: 'light-dark(#d6dbff, #2c3472)' },
})
