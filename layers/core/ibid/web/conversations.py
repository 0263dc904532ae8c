"""Routes of conversations: begin, list, read, rename, delete."""

import uuid

from fastapi import APIRouter

from ibid.domain.conversations import Conversation
from ibid.domain.projects import Role
from ibid.web.access import Caller, Given, OwnConversation, member_project
from ibid.web.conversation_bodies import (
    ConversationBody,
    ConversationChangesBody,
    MessageBody,
    NewConversationBody,
)
from ibid.web.errors import documented
from ibid.web.paging import DEFAULT_LIMIT, Cursor, Limit, PageBody

router = APIRouter(tags=["conversations"])


@router.post("/conversations", status_code=201, responses=documented(404, 413, 422))
async def begin_conversation(
    body: NewConversationBody, caller: Caller, services: Given
) -> ConversationBody:
    """Begin a conversation about one of the caller's projects, ready or not."""
    project = await member_project(services, caller, body.project_id, role=Role.VIEWER)
    conversation = Conversation(
        tenant=caller.tenant,
        subject=caller.subject,
        id=uuid.uuid4().hex,
        project_id=project.id,
        title=body.title,
        reply_language=body.reply_language,
        created_at=services.clock.now(),
    )
    await services.conversations.create(conversation)
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
async def delete_conversation(
    conversation: OwnConversation, caller: Caller, services: Given
) -> None:
    """Cancel a conversation's run, then delete it with its messages and runs."""
    await services.engine.cancel(tenant=caller.tenant, conversation_id=conversation.id)
    await services.conversations.delete(conversation.id, principal=caller)


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
