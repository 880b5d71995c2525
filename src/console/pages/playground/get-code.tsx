import { useState } from 'react'
import { Code } from '../../ui/data/code.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { Tabs } from '../../ui/layout/tabs.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { codeOf } from './code-of.ts'
import type { ChatBody } from './run/stream-chat.ts'
import { text } from './text.ts'

/** The call of the page as code to copy. */
export function GetCode({ body, onClose }: { readonly body: ChatBody; readonly onClose: () => void }) {
  const samples = codeOf(location.origin, body)
  const [id, setId] = useState('curl')
  return (
    <Dialog title={text.codeTitle} width="lg" onClose={onClose} actions={<Button onClick={onClose}>Close</Button>}>
      <p className="quiet">{text.codeAbout}</p>
      <Tabs label={text.code} value={id} onChange={setId} tabs={samples}>
        <Code text={samples.find(sample => sample.id === id)?.text ?? ''} />
      </Tabs>
    </Dialog>
  )
}
