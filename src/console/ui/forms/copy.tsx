import { useEffect, useRef, useState } from 'react'
import { toast } from '../overlays/toast.tsx'
import { Button, IconButton } from './button.tsx'

const copiedMs = 1600

/** Returns a function that copies text, and whether it did so a moment ago. */
function useCopied(): [isCopied: boolean, copy: (text: string) => Promise<void>] {
  const [isCopied, setCopied] = useState(false)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])
  const copy = async (text: string): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      toast('The browser did not allow copying. Select the text instead.', 'bad')
      return
    }
    setCopied(true)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => setCopied(false), copiedMs)
  }
  return [isCopied, copy]
}

/** A small button that copies a text. */
export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, copy] = useCopied()
  return <IconButton icon={isCopied ? 'check' : 'copy'} label={isCopied ? 'Copied' : label} onClick={() => void copy(text)} />
}

/** A button with a label that copies a text. */
export function CopyButton({ text, label = 'Copy', look = 'plain' }: { readonly text: string; readonly label?: string; readonly look?: 'plain' | 'primary' }) {
  const [isCopied, copy] = useCopied()
  return (
    <Button look={look} icon={isCopied ? 'check' : 'copy'} onClick={() => void copy(text)}>
      {isCopied ? 'Copied' : label}
    </Button>
  )
}
