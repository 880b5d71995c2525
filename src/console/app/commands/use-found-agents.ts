import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { apiQuery } from '../../api/queries.ts'
import type { Command } from './command-list.ts'

const typingMs = 200
/** The gateway is asked from this number of letters on. */
const lettersMin = 2
const lettersMax = 100
const foundMax = 10
const shownMax = 5

/** Returns a command for each agent that the gateway finds by a part of its name, or by its id. */
export function useFoundAgents(text: string): readonly Command[] {
  const navigate = useNavigate()
  const [asked, setAsked] = useState('')
  const wanted = text.trim().slice(0, lettersMax)
  useEffect(() => {
    const timer = setTimeout(() => setAsked(wanted), typingMs)
    return () => clearTimeout(timer)
  }, [wanted])
  const isOn = asked.length >= lettersMin && wanted.length >= lettersMin
  const found = useQuery({
    ...apiQuery('listAgentsConsole', { query: { q: asked, limit: foundMax, sort: 'last_call' } }),
    enabled: isOn,
    placeholderData: keepPreviousData,
  })
  if (!isOn) return []
  // A name that begins with the text is most likely what the person means.
  const begins = ({ name }: { readonly name: string }): number => Number(name.toLowerCase().startsWith(wanted.toLowerCase()))
  const agents = [...(found.data?.agents ?? [])].sort((a, b) => begins(b) - begins(a)).slice(0, shownMax)
  return agents.map(({ id, name, status }) => ({
    id: `agent ${id}`,
    label: status === 'active' ? name : `${name} (${status === 'paused' ? 'paused' : 'ended'})`,
    group: 'Agent',
    icon: 'agent',
    run: () => void navigate({ to: '/agents/$id', params: { id: String(id) } }),
  }))
}
