"""A client that goes to the owners, in virtual time: which node gets what, and when."""

import pytest
from owners_world import World, entity_of
from shardbus import error_table as errors
from shardbus import wire
from shardbus.wire import Kind


def move(world, shard, node, counter, source=None):
    """The table says so from now on, and one node tells the client."""
    world.own(shard, node, counter)
    (source or world.a).send(world.make_table())
    world.run()


def used(world):
    """Shard 0 is at b, and something went there."""
    move(world, 0, world.b, 2)
    world.tell("m0")
    assert world.b.methods() == ["m0"]
    return world


# --- to whom ---


def test_straight_to_the_owner_with_its_generation_and_one_session_per_node_on_demand():
    world = World()
    move(world, 1, world.b, 2)
    assert not world.b.greetings
    world.tell("m0")
    world.tell("m1", shard=1)
    for node, shard, counter in ((world.a, 0, 1), (world.b, 1, 2)):
        ((kind, _, body),) = node.got
        assert (kind, body[1]) == ("TELL", entity_of(shard))
        assert tuple(body[3]) == world.generation(counter)
    assert [hello["sender"] for hello in world.a.greetings + world.b.greetings] == [7, 7]
    assert all(hello["table"] for hello in world.a.greetings + world.b.greetings)
    assert not world.c.greetings


def test_nothing_is_sent_before_the_table_came():
    world = World(table=False)
    assert world.client.state == "greeting"
    world.tell("m0")
    assert world.a.methods() == []
    move(world, 0, world.b, 2)
    assert world.client.state == "open"
    assert (world.a.methods(), world.b.methods()) == ([], ["m0"])


def test_a_node_without_a_table_gets_everything():
    world = World(table=False)
    world.tell("m0")
    world.run(1.1)
    assert world.client.state == "open"
    assert world.a.got[0][2][3] is None  # no generation
    assert world.a.methods() == ["m0"]


def test_an_unknown_type_goes_through_the_first_node_until_it_is_known():
    world = World()
    world.tell("m0", type_name="new")
    assert world.a.methods() == ["m0"]
    keys = [world.a.key, world.b.key]
    world.a.send(wire.envelope(Kind.TABLE, [world.a.info, world.b.info], [1, world.a.key, 9], keys,
                               [["new", 4, [[1, 1, 0, 5]] * 4]]))
    world.tell("m1", type_name="new")
    # The first message may still be on its way through a.
    assert (world.a.methods(), world.b.methods()) == (["FENCE"], [])


def test_without_an_owner_the_way_of_before_or_the_first_node():
    world = used(World())
    move(world, 0, None, 3)
    world.tell("m1")
    assert world.b.methods() == ["m1"]
    move(world, 1, None, 3)
    world.tell("n0", shard=1)
    assert world.a.methods() == ["n0"]


def test_an_owner_that_cannot_be_reached_is_reached_through_the_first_node():
    world = World()
    world.b.alive = False
    move(world, 0, world.b, 2)
    world.tell("m0")
    assert world.a.methods() == ["m0"]
    world.b.alive = True
    world.run(2.0)
    world.tell("m1")  # it is tried again
    world.tell("m2")
    assert world.a.methods() == ["m1", "FENCE"]
    world.tell("m3")


def test_a_node_that_rejects_is_passed_over():
    world = World()
    world.b.reject = {"code": 20, "retry_after_ms": 500}
    move(world, 0, world.b, 2)
    world.tell("m0")
    world.tell("m1")
    assert (world.a.methods(), len(world.b.greetings)) == (["m0", "m1"], 1)


# --- changes of the way ---


def test_a_new_owner_gets_what_is_new_once_the_fence_came_out_there():
    world = used(World())
    move(world, 0, world.c, 3)
    (fence,) = world.b.fences()
    assert fence == ["t", 0, fence[2], 7, list(world.generation(3)), world.c.key, None]
    world.tell("m1")
    world.tell("m2")
    assert world.c.methods() == []
    world.c.answer_fence(via=world.b, number=fence[2] + 1)  # not this one
    world.run()
    assert world.c.methods() == []
    world.c.answer_fence(via=world.b)
    world.run()
    world.tell("m3")
    assert world.c.methods() == ["m1", "m2", "m3"]
    assert world.b.methods() == ["FENCE"]


def test_what_was_never_used_changes_without_a_fence():
    world = World()
    move(world, 0, world.b, 2)
    move(world, 0, world.c, 3)
    world.tell("m0")
    assert (world.a.methods(), world.b.methods(), world.c.methods()) == ([], [], ["m0"])


def test_moved_changes_the_way_too():
    world = used(World())
    world.b.moved(0, world.c, world.generation(3))
    world.run()
    assert world.b.fences()[0][5] == world.c.key
    world.c.answer_fence(via=world.b)
    world.tell("m1")
    assert world.c.methods() == ["m1"]
    world.b.moved(0, world.b, world.generation(2))  # late, and old
    world.tell("m2")
    assert world.c.methods() == ["m2"]


def test_older_tables_and_older_entries_do_not_count():
    world = World()
    old = world.make_table()
    move(world, 0, world.b, 3)
    world.a.send(old)
    move(world, 0, world.c, 2)  # a newer table with an older generation
    world.tell("m0")
    assert world.b.methods() == ["m0"]


def test_an_open_fence_is_repeated_each_second():
    world = used(World())
    move(world, 0, world.c, 3)
    world.run(0.9)
    assert len(world.b.fences()) == 1
    world.run(0.2)
    world.run(0.2)
    first, second = world.b.fences()
    assert first == second
    world.c.answer_fence(via=world.b)
    world.run(2.0)
    assert len(world.b.fences()) == 2


def test_a_newer_entry_while_a_fence_is_open_fences_anew_along_the_old_way():
    world = used(World())
    move(world, 0, world.c, 3)
    world.tell("m1")
    move(world, 0, world.a, 4)
    first, second = world.b.fences()
    assert second[2] != first[2] and second[5] == world.a.key
    world.c.answer_fence(via=world.b, number=first[2], generation=world.generation(3))
    world.run()
    assert (world.a.methods(), world.c.methods()) == ([], [])
    world.a.answer_fence(via=world.b)
    world.run()
    assert world.a.methods() == ["m1"]


def test_a_fence_that_came_out_at_an_older_owner_goes_on_from_there():
    world = used(World())
    move(world, 0, world.c, 3)
    world.tell("m0", shard=1)
    assert world.a.methods() == ["m0"]
    world.tell("m1")
    move(world, 0, world.a, 4)
    world.c.answer_fence(via=world.b, generation=world.generation(3))
    world.run()
    assert world.c.fences()[0][5] == world.a.key
    assert world.a.methods() == []
    world.a.answer_fence(via=world.c)
    world.run()
    assert world.a.methods() == ["m1"]


def test_an_owner_that_died_before_it_owned_is_forgotten_by_a_new_coordinators_table():
    world = World("abc")
    world.tell("m0")
    world.a.moved(0, world.c, world.generation(2))  # known by a fence that it answered too early
    world.tell("m1")
    assert world.a.methods() == ["m0", "FENCE"]
    world.a.send(world.make_table("ab"))
    world.run()
    assert world.a.methods() == []  # the same coordinator may still publish the move
    world.term = 2
    world.a.send(world.make_table("abc"))
    world.run()
    assert world.a.methods() == []  # it may own the shard
    world.version -= 1  # only its nodes change
    world.a.send(world.make_table("ab"))
    world.run()
    assert world.a.fences()[-1][5] == world.a.key
    world.a.answer_fence()
    world.run()
    assert world.a.methods()[-1] == "m1"


def test_path_lost_ends_what_went_that_way_and_releases_what_is_held():
    world = used(World())
    move(world, 1, world.b, 2)
    world.ask("sent")
    world.ask("other shard", shard=1)
    move(world, 0, world.c, 3)
    world.ask("held")
    world.b.answer_fence(kind=Kind.PATH_LOST)
    world.run()
    assert world.ended == {"sent": "UnknownOutcome"}
    assert world.c.methods() == ["held"]


# --- nodes that go ---


def test_a_lost_owner_ends_its_asks_at_once_and_the_first_node_goes_on():
    world = used(World())
    world.ask("sent")
    world.kill(world.b)
    assert world.ended == {"sent": "UnknownOutcome"}
    world.tell("m1")
    assert world.a.methods() == ["m1"]
    move(world, 0, world.c, 3)
    world.c.answer_fence(via=world.a)
    world.tell("m2")
    assert world.c.methods() == ["m2"]


def test_what_waited_for_a_fence_through_a_lost_node_goes_on_in_order():
    world = used(World())
    move(world, 0, world.c, 3)
    world.tell("m1")
    world.tell("m2")
    world.kill(world.b)
    world.tell("m3")
    assert world.c.methods() == ["m1", "m2", "m3"]


def test_no_session_greets_again_and_what_was_not_sent_is_sent():
    world = World()
    world.b.credit = (1, 1000)
    move(world, 0, world.b, 2)
    world.ask("sent")
    world.ask("unsent")
    world.tell("m1")
    assert world.b.methods() == ["sent"]
    world.b.send(wire.envelope(Kind.NO_SESSION, {"code": 12}))
    world.run()
    assert world.ended == {"sent": "UnknownOutcome"}
    assert world.a.methods() == ["unsent", "m1"]  # meanwhile
    assert len(world.b.greetings) == 2
    world.tell("m2")
    assert world.a.methods() == ["FENCE"]


def test_when_the_first_node_goes_another_one_takes_its_part():
    world = used(World())
    world.kill(world.a)
    world.tell("m0", type_name="unknown")
    assert world.b.methods() == ["m0"]


def test_when_all_are_gone_it_begins_anew_and_takes_any_table():
    world = used(World())
    world.b.alive = False
    world.kill(world.a)
    world.b.session.disconnected(world.now)
    world.ask("held")
    assert world.client.state == "greeting"
    world.nodes["a"].alive = True
    world.version = 0  # of another cluster, perhaps
    world.own(0, world.a, 1)
    world.make_table()
    world.run(0.2)
    world.run(0.2)
    assert world.client.state == "open"
    assert world.a.methods() == ["held"]


# --- bounds ---


def test_deadlines_are_expired_if_held_and_timeout_if_sent():
    world = used(World())
    world.ask("sent", timeout=0.5)
    move(world, 0, world.c, 3)
    world.ask("held", timeout=0.5)
    world.tell("m1")
    assert world.client.next_deadline() <= world.now + 0.7
    world.run(0.7)
    assert world.ended == {"sent": "Timeout", "held": "Expired"}
    world.c.answer_fence(via=world.b)
    world.run()
    assert world.c.methods() == ["m1"]


def test_too_many_waiting_is_overloaded():
    world = used(World(max_waiting=2))
    move(world, 0, world.c, 3)
    world.tell("m1")
    world.ask("held")
    with pytest.raises(errors.Overloaded):
        world.tell("m2")
    world.c.answer_fence(via=world.b)
    world.run()
    world.tell("m3")
    assert world.c.methods() == ["m1", "held", "m3"]


def test_each_node_has_its_own_credit_and_a_fence_does_not_overtake_what_waits_for_it():
    world = World()
    world.b.credit = (1, 1000)
    move(world, 0, world.b, 2)
    world.tell("m0")
    world.tell("m1")
    world.tell("n0", shard=1)
    assert (world.a.methods(), world.b.methods()) == (["n0"], ["m0"])
    move(world, 0, world.c, 3)
    world.run(1.1)
    assert world.b.methods() == []
    world.b.send(wire.envelope(Kind.CREDIT, 10, 1000))
    world.run()
    assert world.b.methods() == ["m1", "FENCE"]


def test_stop_says_goodbye_to_all_and_ends_everything():
    world = used(World())
    world.ask("sent")
    move(world, 0, world.c, 3)
    world.ask("held")
    world.client.stop()
    world.run()
    assert world.ended == {"sent": "UnknownOutcome", "held": "Stopped"}
    assert world.a.methods()[-1] == world.b.methods()[-1] == "GOODBYE"
    with pytest.raises(errors.Stopped):
        world.tell("m1")


def test_a_closed_door_is_named():
    world = World(table=False)
    world.client = type(world.client)(world.client.settings)
    world.a.reject = world.b.reject = {"code": 15, "text": "theirs a, yours b"}
    world.run()
    assert isinstance(world.client.rejection, errors.ClusterMismatch)


def test_garbage_about_owners_does_no_harm():
    world = used(World())
    for kind in (Kind.TABLE, Kind.MOVED, Kind.FENCE_OK, Kind.PATH_LOST):
        for body in ([], [None] * 6, ["t", 3, 1, 2], [[], [1, None, 99], [], [["t", 4, [[1]]]]],
                     ["unknown", 1, 1, [1, 1, 1], "", 0], ["t", 0, 99, 7, None, None]):
            world.a.send(wire.envelope(kind, *body))
    world.tell("m1")
    assert world.b.methods() == ["m1"]
