"""Routes of conversations: begin, list, read, rename, delete."""

from contextlib import suppress

from fastapi import APIRouter

from ibid.domain.conversations import Conversation
from ibid.domain.errors import ConversationNotFound
from ibid.domain.projects import Role
from ibid.web.access import Caller, Given, OwnConversation, member_project
from ibid.web.claims import Held
from ibid.web.conversation_bodies import (
    ConversationBody,
    ConversationChangesBody,
    MessageBody,
    NewConversationBody,
)
from ibid.web.errors import documented
from ibid.web.minting import Minted
from ibid.web.paging import DEFAULT_LIMIT, Cursor, Limit, PageBody

router = APIRouter(tags=["conversations"])


@router.post("/conversations", status_code=201, responses=documented(404, 413, 422))
async def begin_conversation(
    body: NewConversationBody, caller: Caller, services: Given, claim: Held, minted: Minted
) -> ConversationBody:
    """Begin a conversation about one of the caller's projects, ready or not."""
    project = await member_project(services, caller, body.project_id, role=Role.VIEWER)
    if minted.is_planned:
        with suppress(ConversationNotFound):
            return ConversationBody.of(
                await services.conversations.get(minted.value, principal=caller)
            )
    conversation = Conversation(
        tenant=caller.tenant,
        subject=caller.subject,
        id=minted.value,
        project_id=project.id,
        title=body.title,
        reply_language=body.reply_language,
        created_at=services.clock.now(),
    )
    await services.conversations.create(
        conversation, idempotency=None if claim is None else claim.record_id
    )
    return ConversationBody.of(conversation)


@router.get("/conversations", responses=documented(422))
async def list_conversations(
    caller: Caller, services: Given, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> PageBody[ConversationBody]:
    """List the caller's conversations, newest first."""
    page = await services.conversations.list_for(principal=caller, cursor=cursor, limit=limit)
    return PageBody[ConversationBody].of(page, ConversationBody.of)


@router.get("/conversations/{conversationId}", responses=documented(404, 422))
async def get_conversation(conversation: OwnConversation) -> ConversationBody:
    """Return one conversation."""
    return ConversationBody.of(conversation)


@router.patch("/conversations/{conversationId}", responses=documented(404, 413, 422))
async def rename_conversation(
    body: ConversationChangesBody,
    conversation: OwnConversation,
    caller: Caller,
    services: Given,
) -> ConversationBody:
    """Give a conversation another title."""
    renamed = await services.conversations.rename(
        conversation.id, principal=caller, title=body.title
    )
    return ConversationBody.of(renamed)


@router.delete("/conversations/{conversationId}", status_code=204, responses=documented(404, 422))
async def delete_conversation(conversation: OwnConversation, services: Given) -> None:
    """Cancel a conversation's run, then delete it with all that hangs on it."""
    await services.deletion.conversation(conversation)


@router.get("/conversations/{conversationId}/messages", responses=documented(404, 422))
async def list_messages(
    conversation: OwnConversation,
    caller: Caller,
    services: Given,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> PageBody[MessageBody]:
    """List a conversation's messages, oldest first."""
    page = await services.conversations.messages(
        conversation.id, principal=caller, cursor=cursor, limit=limit
    )
    return PageBody[MessageBody].of(page, MessageBody.of)
